import DequeModule

/// Which transactions are on their way to the broker, and how far all of them have arrived. Pure.
///
/// The publisher's cursor follows ``acknowledged``: the end of the contiguous prefix. What is acknowledged beyond a
/// hole counts only when the hole is filled.
package struct PublishWindow {
    /// The last sequence up to which everything was acknowledged.
    package private(set) var acknowledged: Int64
    /// The last sequence that was sent.
    package private(set) var sent: Int64
    private struct Transaction {
        /// Messages without an answer.
        var outstanding: Int
        var bytes: Int
    }

    /// What was sent after the acknowledged prefix, in order. What has been answered stays until all before it is.
    private var transactions: Deque<Transaction> = []
    private var unanswered = 0
    package private(set) var inFlightBytes = 0
    /// True once a message failed: nothing more is sent until everything sent has been answered.
    package private(set) var hasFailed = false

    package init(acknowledged: Int64) {
        self.acknowledged = acknowledged
        sent = acknowledged
    }

    package var isEmpty: Bool { transactions.isEmpty }

    package mutating func send(_ sequence: Int64, messages: Int, bytes count: Int) {
        // Sequences that are not on the outbox any more were acknowledged long ago.
        if transactions.isEmpty { (acknowledged, sent) = (sequence - 1, sequence - 1) }
        while sent < sequence - 1 {
            sent += 1
            transactions.append(Transaction(outstanding: 0, bytes: 0))
        }
        sent = sequence
        transactions.append(Transaction(outstanding: messages, bytes: count))
        unanswered += messages
        inFlightBytes += count
    }

    /// One message of the transaction was acknowledged.
    package mutating func acknowledge(_ sequence: Int64) {
        guard answer(sequence), !hasFailed else { return }
        while let first = transactions.first, first.outstanding == 0 {
            transactions.removeFirst()
            acknowledged += 1
        }
    }

    /// One message of the transaction was not delivered, for whatever reason: it will be sent again, with all after it.
    package mutating func fail(_ sequence: Int64) {
        hasFailed = true
        _ = answer(sequence)
    }

    private mutating func answer(_ sequence: Int64) -> Bool {
        let index = Int(sequence - acknowledged) - 1
        guard transactions.indices.contains(index), transactions[index].outstanding > 0 else { return false }
        transactions[index].outstanding -= 1
        unanswered -= 1
        if transactions[index].outstanding == 0 { inFlightBytes -= transactions[index].bytes }
        return true
    }

    /// True when every message that was sent has been answered.
    package var isAnswered: Bool { unanswered == 0 }

    /// Begins again after the acknowledged prefix, or at an earlier point where the topic has lost what it had.
    package mutating func restart(from sequence: Int64? = nil) {
        self = PublishWindow(acknowledged: min(acknowledged, sequence ?? acknowledged))
    }
}
