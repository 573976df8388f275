/// Which transactions are on their way to the broker, and how far all of them have arrived. Pure.
///
/// The publisher's cursor follows ``acknowledged``: the end of the contiguous prefix. What is acknowledged beyond a hole
/// counts only when the hole is filled.
package struct PublishWindow {
    /// The last sequence up to which everything was acknowledged.
    package private(set) var acknowledged: Int64
    /// The last sequence that was sent.
    package private(set) var sent: Int64
    /// Messages without an acknowledgement, by sequence. Zero: all are acknowledged, but something before is not.
    private var outstanding: [Int64: Int] = [:]
    private var bytes: [Int64: Int] = [:]
    package private(set) var inFlightBytes = 0
    /// True once a message failed: nothing more is sent until everything sent has been answered.
    package private(set) var hasFailed = false

    package init(acknowledged: Int64) {
        self.acknowledged = acknowledged
        sent = acknowledged
    }

    package var isEmpty: Bool { outstanding.isEmpty }

    package mutating func send(_ sequence: Int64, messages: Int, bytes count: Int) {
        sent = sequence
        outstanding[sequence] = messages
        bytes[sequence] = count
        inFlightBytes += count
    }

    /// One message of the transaction was acknowledged.
    package mutating func acknowledge(_ sequence: Int64) {
        guard let count = outstanding[sequence] else { return }
        outstanding[sequence] = count - 1
        if count == 1 { inFlightBytes -= bytes.removeValue(forKey: sequence) ?? 0 }
        guard !hasFailed else { return }
        while let next = outstanding[acknowledged + 1], next == 0 {
            outstanding[acknowledged + 1] = nil
            acknowledged += 1
        }
    }

    /// One message of the transaction was not delivered, for whatever reason: it will be sent again, with all after it.
    package mutating func fail(_ sequence: Int64) {
        hasFailed = true
        guard let count = outstanding[sequence] else { return }
        outstanding[sequence] = count - 1
        if count == 1 { inFlightBytes -= bytes.removeValue(forKey: sequence) ?? 0 }
    }

    /// True when every message that was sent has been answered.
    package var isAnswered: Bool { outstanding.allSatisfy { $0.value <= 0 } }

    /// Begins again after the acknowledged prefix, or at an earlier point where the topic has lost what it had.
    package mutating func restart(from sequence: Int64? = nil) {
        self = PublishWindow(acknowledged: min(acknowledged, sequence ?? acknowledged))
    }
}
