import MartletMerge
import Testing

@Suite struct RepublishPolicyTests {
    @Test func theBackOffGrowsAndRepublishingEndsOnATruncatedTopic() {
        var now = ContinuousClock.now
        var policy = RepublishPolicy(pauses: [.zero, .seconds(10), .seconds(60)])
        #expect(policy.judge(found: 1, expected: 5, isCut: true, at: now) == .publish)
        #expect(policy.judge(found: 1, expected: 5, isCut: true, at: now) == .wait)
        #expect(policy.isDue(at: now + .seconds(9)) == false)
        now += .seconds(10)
        #expect(policy.isDue(at: now) == true)
        #expect(policy.isDue(at: now) == false)
        #expect(policy.judge(found: 2, expected: 5, isCut: true, at: now) == .wait)
        now += .seconds(60)
        #expect(policy.isDue(at: now) == true)
        #expect(policy.judge(found: 2, expected: 5, isCut: true, at: now) == .giveUp)
        // A topic that still has its beginning was recreated: retention is not the cause.
        #expect(policy.judge(found: 2, expected: 5, isCut: false, at: now) == .publish)
        for _ in 0..<5 {
            #expect(policy.judge(found: 2, expected: 5, isCut: false, at: now) == .wait)
            now += .seconds(60)
            #expect(policy.isDue(at: now) == true)
        }
        policy.noteConfirmed(4)
        #expect(policy.judge(found: 2, expected: 5, isCut: false, at: now) == .wait)
        now += .seconds(60)
        #expect(policy.isDue(at: now) == true)
        // The confirmation was complete, so that a later loss is a new one.
        policy.noteConfirmed(5)
        #expect(policy.judge(found: 2, expected: 5, isCut: true, at: now) == .publish)
        #expect(policy.mayPublish(after: 5, at: now) == false)
        #expect(policy.mayPublish(after: 5, at: now + .seconds(601)) == true)
    }
}
