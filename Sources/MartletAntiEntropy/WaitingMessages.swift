package import MartletWire

/// The messages of other nodes that wait until this node has all transactions that their sender had. Pure: it is told
/// the time, and which of them is answered.
package struct WaitingMessages {
    /// How long a message waits.
    package static let patience = Duration.seconds(900)
    /// The most messages that wait.
    package static let most = 200

    private var all: [(message: AntiEntropyMessage, since: ContinuousClock.Instant)] = []

    package init() {}

    package var isEmpty: Bool { all.isEmpty }
    package var count: Int { all.count }

    /// In the order in which they came.
    package subscript(index: Int) -> AntiEntropyMessage { all[index].message }

    /// A message has come.
    ///
    /// - Parameter room: how many bytes may wait; one message waits however large it is. The oldest ones are dropped.
    package mutating func add(_ message: AntiEntropyMessage, room: Int, at now: ContinuousClock.Instant) {
        // A node that begins a new check no longer needs answers to its previous one.
        if message.step == 0 { all.removeAll { $0.message.sender == message.sender && $0.message.step == 0 } }
        all.append((message, now))
        var bytes = all.reduce(0) { $0 + $1.message.byteCount }
        while all.count > Self.most || (all.count > 1 && bytes > room) { bytes -= all.removeFirst().message.byteCount }
    }

    /// Drops the messages that have waited for too long. Their senders begin another check.
    package mutating func drop(at now: ContinuousClock.Instant) { all.removeAll { now - $0.since > Self.patience } }

    /// The message needs to wait no longer.
    package mutating func remove(at index: Int) { all.remove(at: index) }
}
