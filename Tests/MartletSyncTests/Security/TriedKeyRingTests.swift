import MartletSync
import Testing

/// When quarantined messages that lack a key are retried.
@Suite struct TriedKeyRingTests {
    private let tried = TriedKeyRing()

    private func missing(at generation: Int) throws -> WireError.MissingKey {
        try #require(WireError.missingKey("k1", generation, "It is encrypted with key k1.").missingKey)
    }

    @Test func eachKeyRingIsTriedOnce() {
        // At the start, messages may have waited since the last run.
        #expect(tried.begin(0))
        #expect(!tried.begin(0))
        #expect(tried.begin(2))
        #expect(!tried.begin(2))
        #expect(!tried.begin(1))
    }

    @Test func aKeyRingIsTriedAgainAfterAnAttemptThatFailed() {
        #expect(tried.begin(2))
        tried.forget()
        #expect(tried.begin(2))
        #expect(!tried.begin(2))
    }

    /// The message was read with the previous key ring, while the present one was tried on everything else.
    @Test func aMessageThatLacksAKeyOfAnEarlierKeyRingHasThePresentOneTriedAgain() throws {
        #expect(tried.begin(3))
        tried.note(try missing(at: 2))
        #expect(tried.begin(3))
        #expect(!tried.begin(3))
    }

    @Test func aKeyThatThePresentKeyRingLacksIsNotTriedAgain() throws {
        #expect(tried.begin(3))
        tried.note(try missing(at: 3))
        #expect(!tried.begin(3))
    }
}
