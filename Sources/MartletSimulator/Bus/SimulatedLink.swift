package import MartletSync

/// A node's connection to the broker: the ``/MartletBus/Bus`` that its publisher and consumer see. Safe because a
/// simulation runs on one thread.
package final class SimulatedLink: Bus, @unchecked Sendable {
    let log: SimulatedTopic
    package var topic: String { log.name }
    let queueLimit: Int
    /// True while the node has no network.
    var isCut = false
    /// The number of calls until the machine dies at one.
    var callsUntilDeath: Int?
    private(set) var isDead = false
    /// True if the broker accepts and acknowledges each message at once.
    let isImmediate: Bool
    /// True to read partitions in any order, a few messages at a time.
    var reorders = false
    /// True to lose each connection after a few polls.
    package var losesConnections = false
    /// The number of next messages that are preceded by a corrupted copy.
    var corruptCount = 0
    /// Determines what is read. Set for each step.
    var random = SplitMix(seed: 0)
    private(set) var producer: SimulatedProducer?

    package init(_ log: SimulatedTopic, queueLimit: Int, isImmediate: Bool = false) {
        self.log = log
        self.isImmediate = isImmediate
        self.queueLimit = queueLimit
    }

    package func makeProducer(
        acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer {
        try call()
        let made = SimulatedProducer(self, acknowledge)
        producer = made
        return made
    }

    package func makeConsumer() throws(BusError) -> any BusConsumer {
        try call()
        guard !isCut else { throw Self.unreachable }
        return SimulatedConsumer(self)
    }

    /// Called first by the bus's methods: the machine may die at the call.
    func call() throws(BusError) {
        if let left = callsUntilDeath {
            callsUntilDeath = left - 1
            if left <= 0 { die() }
        }
        guard !isDead else { throw BusError(.closed, "the machine is down") }
    }

    private func die() {
        isDead = true
        callsUntilDeath = nil
        Machine.die(afterWrites: 0)
    }

    /// Restarts the link. Messages in flight when the machine died may or may not have reached the broker.
    func restart() {
        if let producer { producer.abandon(storing: isCut ? 0 : random.below(producer.queue.count + 1)) }
        producer = nil
        isDead = false
        callsUntilDeath = nil
    }

    static let unreachable = BusError(.unreachable, "the node has no network", isRetriable: true)
}
