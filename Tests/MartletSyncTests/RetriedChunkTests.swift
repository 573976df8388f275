import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Chunks in the quarantine that are retried.
@Suite struct RetriedChunkTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    private func tooLarge() throws -> (b: TestNode, count: Int) {
        let a = try lab.node("a") { $0.maxMessageBytes = 4000 }
        let rules = MessageSecurity(keys: nil) {
            $0.maxMessageBytes = 10_000
            $0.maxTransactionBytes = 10_000
        }
        let b = try lab.node("b", rules) { $0.maxMessageBytes = 4000 }
        try a.write("INSERT INTO setting VALUES ('large', hex(zeroblob(10000)))")
        try a.publish()
        try b.consume()
        let count = try b.store.quarantined().count
        #expect(count > 3)
        return (b, count)
    }

    /// An agent retries everything that is quarantined at each start, also before the limit is raised.
    @Test func p189ChunksThatAreStillTooLargeStayAndAreAppliedOnceTheLimitIsRaised() throws {
        let (b, count) = try tooLarge()
        func entries() throws -> [[String]] {
            try b.store.quarantined().map { message in
                let place = [message.topic, "\(message.partition)", "\(message.offset)"]
                return ["\(message.id)"] + place + message.headers.filter { $0.hasPrefix("martlet-sequence=") }
            }
        }
        let before = try entries()
        try b.restart()
        let report = try b.engine.retryQuarantined()
        #expect(report.applied == 0 && report.kept == count)
        #expect(try entries() == before)
        try b.restart(security: MessageSecurity())
        _ = try b.engine.retryQuarantined()
        #expect(try b.keys() == ["large"])
        #expect(try b.store.quarantined() == [])
        #expect(try b.gaps().isEmpty)
    }

    @Test func p189AChunkThatIsStillTooLargeCanBeDiscardedWithItsGap() throws {
        let (b, _) = try tooLarge()
        try b.restart()
        _ = try b.engine.retryQuarantined()
        for message in try b.store.quarantined() { _ = try b.store.discardQuarantined(message.id) }
        #expect(try b.gaps().isEmpty)
    }

    /// The transaction that the chunks form is refused for its age: a later retry must not apply it all the same.
    @Test func p189ARetryOfChunksDoesNotBypassTheWatermark() throws {
        let (b, _) = try tooLarge()
        try b.engine.session.transaction { db, context in
            try context.collected.advance(db, to: HybridTime(milliseconds: SQLiteClock.milliseconds + 1000))
        }
        try b.restart(security: MessageSecurity())
        for _ in 0..<3 {
            _ = try b.engine.retryQuarantined()
            #expect(try b.keys() == [])
        }
    }
}
