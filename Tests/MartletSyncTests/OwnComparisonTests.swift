import MartletSync
import Testing

/// When a node republishes what the topic lacks, without a topic.
@Suite struct OwnComparisonTests {
    private let start = ContinuousClock.Instant.now

    /// The broker has acknowledged 7 transactions.
    ///
    /// - Parameter sent: the last one that was sent.
    private func assigned(sent: Int64 = 7) -> OwnComparison {
        var own = OwnComparison(RepublishPolicy(pauses: [.zero, .seconds(10)]))
        own.assign(
            acknowledged: 7,
            unanswered: UnansweredMessages(PublisherProgress(acknowledged: 7, sent: sent, advancedAt: start)))
        return own
    }

    @Test func withoutMessagesInFlightNoneAreUnanswered() {
        #expect(assigned().unanswered == nil)
        #expect(assigned(sent: 9).unanswered?.last == 9)
    }

    @Test func whatTheTopicHasIsNotRepublished() {
        var own = assigned()
        #expect(own.judgeEnd(found: 7, isCut: false, at: start) == .nothingMissing)
        own.noteCompared()
        #expect(own.expected == 0)
        #expect(!own.isAwaiting)
        #expect(own.takeDue(at: start + .seconds(3600)) == nil)
    }

    @Test func whatIsMissingAgainIsRepublishedOnceItsBackOffHasEnded() {
        var own = assigned()
        #expect(own.judgeEnd(found: 3, isCut: false, at: start) == .publish)
        #expect(own.isAwaiting)
        #expect(own.judgeEnd(found: 4, isCut: false, at: start) == .wait)
        #expect(own.takeDue(at: start + .seconds(9)) == nil)
        #expect(own.takeDue(at: start + .seconds(10)) == 4)
        #expect(own.takeDue(at: start + .seconds(10)) == nil)
        own.noteConfirmed(7)
        #expect(!own.isAwaiting)
    }

    @Test func answeredMessagesThatCameBackAreForgotten() {
        var own = assigned(sent: 9)
        own.noteAnswered()
        #expect(own.unanswered == nil)
        #expect(own.takeRecount(at: start + .seconds(3600)) == false)
    }

    /// The ends from before the acknowledgement prove nothing, so those that were read after it stay.
    @Test func answeredMessagesAreAwaitedUpToTheEndsAfterTheAnswer() {
        var own = assigned(sent: 9)
        #expect(own.judgeAnswered(found: 7, ends: [0: 20], isRead: false, at: start) == nil)
        #expect(own.unanswered?.ends == [0: 20])
        #expect(own.judgeAnswered(found: 7, ends: [0: 20], isRead: true, at: start) == 7)
        #expect(own.unanswered == nil)
    }

    @Test func aSecondSuspicionCountsAgainInsteadOfRepublishing() {
        var own = assigned(sent: 9)
        #expect(own.judgeAnswered(found: 7, ends: [:], isRead: true, at: start) == 7)
        own.assign(
            acknowledged: 7,
            unanswered: UnansweredMessages(PublisherProgress(acknowledged: 7, sent: 9, advancedAt: start)))
        #expect(own.judgeAnswered(found: 7, ends: [:], isRead: true, at: start) == nil)
        #expect(own.unanswered == nil)
        #expect(own.takeRecount(at: start + .seconds(59)) == false)
        #expect(own.takeRecount(at: start + .seconds(60)) == true)
        #expect(own.takeRecount(at: start + .seconds(60)) == false)
    }
}
