import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Messages in flight when a node begins to read a topic.
@Suite struct InFlightMessageTests {
    let lab: Lab
    let bus: HoldingBus
    let node: TestNode

    /// A node that has published three transactions, was stopped, and has three more to publish.
    init() throws {
        lab = try Lab()
        bus = HoldingBus(lab.bus)
        node = try lab.node("a", bus: bus)
        for number in 1...3 { try node.write("INSERT INTO setting VALUES (\(number), 'before')") }
        try exchange([node])
        for number in 4...6 { try node.write("INSERT INTO setting VALUES (\(number), 'offline')") }
        try node.restart()
    }

    /// Sends messages, begins to read, and receives the acknowledgements only then.
    private func start(losing: Bool) throws {
        bus.hold(losing: losing)
        try runUntilNothingMoves("publishing") { node.publisher.step() }
        #expect(node.publisher.currentProgress.inFlightBytes > 0)
        try node.consume()
        bus.release()
        try exchange([node])
    }

    @Test func p57messagesInFlightAtTheStartAreNotSentTwice() throws {
        try start(losing: false)
        #expect(try lab.messages().count == 6)
        #expect(try node.engine.confirmed() == 6)
    }

    @Test func p57messagesInFlightToALostTopicAreRepublished() throws {
        try start(losing: true)
        #expect(try lab.messages().count == 6)
        #expect(try node.engine.confirmed() == 6)
        let late = try lab.node("late")
        try late.consume()
        #expect(try late.rows("SELECT count(*) FROM setting") == ["6"])
    }
}
