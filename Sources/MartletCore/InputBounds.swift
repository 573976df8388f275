/// The ranges of numbers that come from outside: from a topic, or from a store that an older version filled from one.
///
/// They are checked where bytes become messages (``WireFormat``, ``WireEnvelope``, ``SnapshotFormat``,
/// ``SnapshotEnvelope``, ``CheckFormat``, ``SequenceSet``), and once in each store that has no such checks behind it
/// (``StoredBounds``). What is behind them adds and subtracts without looking: sums and differences of a few values are
/// in the range of an `Int64` (docs/decisions/0029).
package enum InputBounds {
    /// The greatest sequence, offset or count. Doubles, and so JSON and metrics, have it exactly.
    package static let greatest: Int64 = 1 << 53 - 1
    package static let sequences: ClosedRange<Int64> = 1...greatest
    package static let offsets: ClosedRange<Int64> = 0...greatest
    /// Times of a wall clock, in milliseconds since 1970. Before that, too: there are machines whose clock was never
    /// set.
    package static let milliseconds: ClosedRange<Int64> = -(1 << 48)...(1 << 48 - 1)
    /// More partitions than any topic has.
    package static let partitions: ClosedRange<Int32> = 0...999_999
    /// More chunks than any transaction or part of a snapshot has.
    package static let maxChunks = 1_000_000
    /// More messages than any snapshot has.
    package static let maxMessages = 1 << 31 - 1
    /// Rows of a range that a check compares: sums of all ranges of a message are in range, too.
    package static let rows: ClosedRange<UInt64> = 0...(1 << 48 - 1)
    /// More steps than any check has.
    package static let maxCheckStep: UInt32 = 255
    /// Ranges, or tables, of one check.
    package static let maxCheckRanges = 4096
    /// Gaps in what a message says to have of all origins.
    package static let maxGaps = 10_000
    /// Transactions in whose place one may stand.
    package static let maxRestated = 10_000
    /// Of what a node, a topic or a table is called.
    package static let maxNameBytes = 1000
    /// Changes of one transaction that name no row, and are kept. Of more nothing can be made either.
    package static let maxNameless = 10_000

    /// Nil for what is no sequence.
    package static func sequence(_ value: UInt64) -> Int64? {
        Int64(exactly: value).flatMap { sequences.contains($0) ? $0 : nil }
    }

    /// A number in a header. Nil where it is none, or not in the range.
    package static func number(_ header: [UInt8]?, in range: ClosedRange<Int64>) -> Int64? {
        header.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }.flatMap { range.contains($0) ? $0 : nil }
    }

    /// Nil for a reading that no clock comes to: those of ``HybridTime/init(milliseconds:)`` have the uppermost bit
    /// clear, and the store keeps and compares readings as `Int64`.
    package static func time(_ reading: UInt64) -> HybridTime? {
        reading <= UInt64(Int64.max) ? HybridTime(rawValue: reading) : nil
    }

    /// Nil where the sum runs over, or what it adds to did.
    package static func sum(_ reading: UInt64?, _ step: UInt64) -> UInt64? {
        reading.flatMap { reading in
            let (sum, overflow) = reading.addingReportingOverflow(step)
            return overflow ? nil : sum
        }
    }

    package static func isName(_ text: String) -> Bool { text.utf8.count <= maxNameBytes }
}
