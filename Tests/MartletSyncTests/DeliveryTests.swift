import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Waiting until other nodes have a committed transaction.
@Suite struct DeliveryTests {
    let lab: AntiEntropyLab
    let a: CheckedNode
    let b: CheckedNode

    init() throws {
        lab = try AntiEntropyLab()
        a = try lab.node("a")
        b = try lab.node("b")
    }

    /// One look by the waiting node, and one step of all nodes that answer.
    private func look(_ delivery: inout Delivery, _ others: [CheckedNode]) throws -> [Delivery.Missing]? {
        let missing = try delivery.missing(a.node.store)
        for node in [a] + others + [a] { #expect(node.antiEntropy.step(timeout: .zero)) }
        return missing
    }

    @Test func aTransactionIsDeliveredOnceTheOtherNodeHasAppliedAndReportedIt() throws {
        // An agent runs.
        #expect(a.antiEntropy.step(timeout: .zero))
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        var delivery = try Delivery(a.node.store, to: .nodes(["b"]))
        #expect(try look(&delivery, [b]) == nil)
        try a.node.publish()
        // The node was asked and has not answered: it is not known to have anything yet.
        #expect(try look(&delivery, [b]) == [Delivery.Missing(node: "b", isKnown: false)])
        #expect(try look(&delivery, [b]) == [Delivery.Missing(node: "b", isKnown: false)])
        try b.node.consume()
        // Later transactions need not be there.
        try a.node.write("INSERT INTO setting VALUES ('l', 2)")
        #expect(try look(&delivery, [b]) == [Delivery.Missing(node: "b", isKnown: false)])
        #expect(try look(&delivery, [b]) == [])
        let count = try lab.messageCount
        #expect(try look(&delivery, [b]) == [])
        #expect(try lab.messageCount == count)
        var later = try Delivery(a.node.store, to: .nodes([b.node.engine.node.description]))
        try a.node.publish()
        #expect(try look(&later, [b]) == [Delivery.Missing(node: "b", isKnown: true, count: 1)])
        try b.node.consume()
        #expect(try look(&later, [b])?.count == 1)
        #expect(try look(&later, [b]) == [])
    }

    private func withLockedStore(
        _ body: (_ open: @escaping () throws -> Store, _ release: @escaping () throws -> Void) throws -> Void
    ) throws {
        let path = a.node.path
        let other = try DatabaseQueue.ofAnotherProgram(path)
        defer { try? other.close() }
        try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
        var configuration = StoreConfiguration()
        configuration.busyTimeout = .zero
        try body({ [configuration] in try Store(path: path, configuration: configuration) }) {
            try other.inDatabase { try $0.execute(sql: "COMMIT") }
        }
    }

    /// Another program may keep the store locked for longer than the busy timeout.
    @Test func aLockedStoreIsWaitedFor() throws {
        #expect(a.antiEntropy.step(timeout: .zero))
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try a.node.publish()
        try withLockedStore { open, release in
            var short = DeliveryWait(to: .broker, through: nil, opening: open)
            guard case .busy = try short.run(until: .now) else { throw TestFailure("the store was not locked") }
            var attempts = 0
            var wait = DeliveryWait(to: .broker, through: nil) {
                attempts += 1
                if attempts == 2 { try release() }
                return try open()
            }
            let outcome = try wait.run(until: .now + .seconds(60))
            guard case .delivered = outcome else { throw TestFailure("\(outcome)") }
            #expect(attempts == 2)
        }
    }

    /// The same for the request for a report: the next look asks.
    @Test func aLookAtALockedStoreAsksLater() throws {
        #expect(a.antiEntropy.step(timeout: .zero))
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try a.node.publish()
        try b.node.consume()
        var configuration = StoreConfiguration()
        configuration.busyTimeout = .zero
        let store = try Store(path: a.node.path, configuration: configuration)
        var delivery = try Delivery(store, to: .nodes(["b"]))
        try withLockedStore { _, release in
            #expect(try delivery.missing(store) == [Delivery.Missing(node: "b", isKnown: false)])
            try release()
        }
        #expect(try delivery.missing(store) == [Delivery.Missing(node: "b", isKnown: false)])
        // The request, the answer, and the look at it.
        for _ in 0..<3 { for node in [a, b] { #expect(node.antiEntropy.step(timeout: .zero)) } }
        #expect(try delivery.missing(store) == [])
        try store.close()
    }

    @Test func allNodesAreThoseThatWereHeardOf() throws {
        let c = try lab.node("c")
        #expect(a.antiEntropy.step(timeout: .zero))
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try a.node.publish()
        var delivery = try Delivery(a.node.store, to: .all)
        #expect(try look(&delivery, [b, c])?.first?.isKnown == false)
        try b.node.consume()
        #expect(try look(&delivery, [b, c])?.count == 1)
        #expect(try look(&delivery, [b, c]) == [])
        // A node that has written was heard of.
        try c.node.write("INSERT INTO setting VALUES ('c', 1)")
        try c.node.publish()
        try a.node.consume()
        var both = try Delivery(a.node.store, to: .all)
        #expect(try look(&both, [b, c]) == [Delivery.Missing(node: "c", isKnown: true)])
        try c.node.consume()
        #expect(try look(&both, [b, c])?.count == 1)
        #expect(try look(&both, [b, c]) == [])
    }

    /// Which transactions of third nodes it has is of no interest to the node that waits.
    @Test func aNodeThatLacksATransactionOfAThirdNodeConfirmsADelivery() throws {
        let c = try lab.node("c")
        #expect(a.antiEntropy.step(timeout: .zero))
        try c.node.write("INSERT INTO setting VALUES ('c', 1)")
        try c.node.publish()
        var garbage = try #require(try lab.lab.messages().first)
        garbage.payload = [1, 2, 3]
        #expect(try b.node.engine.apply([garbage], topic: "t").quarantined == 1)
        try a.node.consume()
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try a.node.publish()
        var delivery = try Delivery(a.node.store, to: .nodes(["b"]))
        #expect(try look(&delivery, [b])?.count == 1)
        // It lacks the transaction that it is asked for.
        #expect(try look(&delivery, [b])?.count == 1)
        try b.node.consume()
        #expect(try b.node.rows("SELECT key FROM setting") == ["k"])
        #expect(try look(&delivery, [b])?.count == 1)
        #expect(try look(&delivery, [b]) == [])
    }

    @Test func anAmbiguousNodeNameIsRefusedWithTheNodeIDs() throws {
        let twin = try lab.node("twin")
        for node in [b, twin] {
            try node.node.write("INSERT INTO setting VALUES ('x', 1)")
            try node.node.publish()
        }
        try a.node.consume()
        try a.damage("UPDATE \(InternalName.nodes) SET name = 'b' WHERE name = 'twin'")
        var delivery = try Delivery(a.node.store, to: .nodes(["b"]))
        let error = #expect(throws: StoreError.self) { _ = try delivery.missing(a.node.store) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.hint.contains(twin.node.engine.node.description) == true)
    }

    @Test func aNodeIsAskedAgainSoonAndThenLessOften() throws {
        #expect(a.antiEntropy.step(timeout: .zero))
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try a.node.publish()
        var delivery = try Delivery(a.node.store, to: .nodes(["b"]))
        let start = ContinuousClock.now
        var asked: [Int] = []
        var last = try Delivery.answerWanted(a.node.engine.session)
        for second in 0...40 {
            #expect(try delivery.missing(a.node.store, at: start + .seconds(second))?.count == 1)
            let wanted = try Delivery.answerWanted(a.node.engine.session)
            if wanted != last { asked.append(second) }
            last = wanted
        }
        #expect(asked == [0, 1, 3, 7, 15, 25, 35])
    }

    @Test func aNodeDoesNotWaitForItself() throws {
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try a.node.publish()
        for name in ["a", a.node.engine.node.description] {
            var delivery = try Delivery(a.node.store, to: .nodes([name]))
            let error = #expect(throws: StoreError.self) { _ = try delivery.missing(a.node.store) }
            #expect(error?.code == .invalidArgument)
        }
        var broker = try Delivery(a.node.store, to: .broker)
        #expect(try broker.missing(a.node.store) == [])
    }

    /// The confirmations for a store's former ID don't count for its new one.
    @Test func aForkStartsWithoutTheConfirmationsOfItsFormerID() throws {
        #expect(a.antiEntropy.step(timeout: .zero))
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try a.node.publish()
        var delivery = try Delivery(a.node.store, to: .nodes(["b"]))
        try b.node.consume()
        for _ in 0..<2 { _ = try look(&delivery, [b]) }
        #expect(try look(&delivery, [b]) == [])
        try a.node.engine.fork()
        try a.node.write("INSERT INTO setting VALUES ('l', 1)")
        try a.node.publish()
        var after = try Delivery(a.node.store, to: .nodes(["b"]))
        #expect(try after.missing(a.node.store) == [Delivery.Missing(node: "b", isKnown: true)])
    }
}
