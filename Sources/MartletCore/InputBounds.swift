/// The valid ranges of numbers that come from outside: from a topic, or from a store that an older version filled from
/// a topic.
///
/// They are checked where bytes are decoded into messages (``/MartletWire/WireFormat``, ``/MartletWire/WireEnvelope``,
/// ``/MartletWire/SnapshotFormat``, ``/MartletWire/SnapshotEnvelope``, ``/MartletWire/AntiEntropyFormat``,
/// ``SequenceSet``), and once in each store that was filled without these checks (``/MartletReplica/StoredBounds``).
/// Code behind these checks adds and subtracts without overflow checks, since sums and differences of a few such values
/// fit in an `Int64`
/// (docs/decisions/0029).
package enum InputBounds {
    /// The greatest sequence, offset or count. A double represents it exactly, and so do JSON and metrics.
    package static let greatest: Int64 = 1 << 53 - 1
    package static let sequences: ClosedRange<Int64> = 1...greatest
    package static let offsets: ClosedRange<Int64> = 0...greatest
    /// Wall-clock times, in milliseconds since 1970. Includes earlier times, since some machines' clocks were never
    /// set.
    package static let milliseconds: ClosedRange<Int64> = -(1 << 48)...(1 << 48 - 1)
    /// Partition numbers. The upper bound exceeds that of any topic.
    package static let partitions: ClosedRange<Int32> = 0...999_999
    /// The limit for chunks, which no transaction or snapshot part reaches.
    package static let maxChunks = 1_000_000
    /// The limit for messages of a snapshot, which no snapshot reaches.
    package static let maxMessages = 1 << 31 - 1
    /// Row counts of one range that a check compares. The sum over all ranges of a message stays in the range, too.
    package static let rows: ClosedRange<UInt64> = 0...(1 << 48 - 1)
    /// The limit for steps of a check, which no check reaches.
    package static let maxCheckStep: UInt32 = 255
    /// The most ranges, or tables, of one check.
    package static let maxCheckRanges = 4096
    /// The most gaps in the sequences that a message claims to have, over all origins.
    package static let maxGaps = 10_000
    /// The most transactions that one republished transaction may replace.
    package static let maxReplaced = 10_000
    /// The most bytes in the name of a node, topic or table.
    package static let maxNameBytes = 1000
    /// The most changes without a row identity that are kept of one transaction. Further ones are dropped: they
    /// couldn't be applied either.
    package static let maxWithoutIdentity = 10_000

    /// Returns the value as a sequence, or nil if it is out of range.
    package static func sequence(_ value: UInt64) -> Int64? {
        Int64(exactly: value).flatMap { sequences.contains($0) ? $0 : nil }
    }

    /// Returns the number that a header holds, or nil if it holds none or one out of range.
    package static func number(_ header: [UInt8]?, in range: ClosedRange<Int64>) -> Int64? {
        header.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }.flatMap { range.contains($0) ? $0 : nil }
    }

    /// Returns a timestamp, or nil if no clock can reach it: ``HybridTime/init(milliseconds:)`` leaves the uppermost
    /// bit clear, and the store keeps and compares timestamps as `Int64`.
    package static func time(_ reading: UInt64) -> HybridTime? {
        reading <= UInt64(Int64.max) ? HybridTime(rawValue: reading) : nil
    }

    /// Returns the sum, or nil if it overflows or `reading` is nil because an earlier sum did.
    package static func sum(_ reading: UInt64?, _ step: UInt64) -> UInt64? {
        reading.flatMap { reading in
            let (sum, overflow) = reading.addingReportingOverflow(step)
            return overflow ? nil : sum
        }
    }

    package static func isName(_ text: String) -> Bool { text.utf8.count <= maxNameBytes }
}
