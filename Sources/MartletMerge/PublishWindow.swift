import DequeModule

/// The transactions that are in flight to the broker, and the prefix that was acknowledged. A pure value.
///
/// The publisher's cursor follows ``acknowledged``, the end of the contiguous prefix. Acknowledgements beyond a gap
/// count only once the gap is filled.
package struct PublishWindow {
    /// The last sequence of the contiguous acknowledged prefix.
    package private(set) var acknowledged: Int64
    /// The last sequence that was sent.
    package private(set) var sent: Int64
    private struct Transaction {
        /// Messages that are not answered yet.
        var outstanding: Int
        var bytes: Int
    }

    /// The transactions sent after the acknowledged prefix, in order. An answered one stays until all before it are
    /// answered.
    private var transactions: Deque<Transaction> = []
    private var unanswered = 0
    package private(set) var inFlightBytes = 0
    /// True once a message failed. Nothing more is sent until every message in flight has been answered.
    package private(set) var hasFailed = false

    package init(acknowledged: Int64) {
        self.acknowledged = acknowledged
        sent = acknowledged
    }

    package var isEmpty: Bool { transactions.isEmpty }

    package mutating func send(_ sequence: Int64, messages: Int, bytes count: Int) {
        // Sequences that are no longer in the outbox were acknowledged long ago.
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

    /// Notes that one message of a transaction was acknowledged.
    package mutating func acknowledge(_ sequence: Int64) {
        guard answer(sequence), !hasFailed else { return }
        while let first = transactions.first, first.outstanding == 0 {
            transactions.removeFirst()
            acknowledged += 1
        }
    }

    /// Notes that one message of a transaction was not delivered, for whatever reason. It will be resent with
    /// everything after it.
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

    /// True if every message that was sent has been answered.
    package var isAnswered: Bool { unanswered == 0 }

    /// Restarts after the acknowledged prefix, or at an earlier sequence if the topic has lost messages.
    package mutating func restart(from sequence: Int64? = nil) {
        self = PublishWindow(acknowledged: min(acknowledged, sequence ?? acknowledged))
    }
}
