import MartletStore

/// The ranges of numbers that come from outside: from a topic, or from a store that an older version filled from one.
///
/// They are checked where bytes become messages (``WireFormat``, ``WireEnvelope``, ``SnapshotFormat``, ``SnapshotEnvelope``,
/// ``CheckFormat``, ``SequenceSet``), and once in each store that has no such checks behind it (``StoredBounds``). What is behind
/// them adds and subtracts without looking: sums and differences of a few values are in the range of an `Int64`
/// (docs/decisions/0029).
enum WireBounds {
    /// The greatest sequence, offset or count. Doubles, and so JSON and metrics, have it exactly.
    static let greatest: Int64 = 1 << 53 - 1
    static let sequences: ClosedRange<Int64> = 1...greatest
    static let offsets: ClosedRange<Int64> = 0...greatest
    /// Times of a wall clock, in milliseconds since 1970. Before that, too: there are machines whose clock was never set.
    static let milliseconds: ClosedRange<Int64> = -(1 << 48)...(1 << 48 - 1)
    /// More partitions than any topic has.
    static let partitions: ClosedRange<Int32> = 0...999_999
    /// More chunks than any transaction or part of a snapshot has.
    static let maxChunks = 1_000_000
    /// More messages than any snapshot has.
    static let maxMessages = 1 << 31 - 1
    /// Rows of a range that a check compares: sums of all ranges of a message are in range, too.
    static let rows: ClosedRange<UInt64> = 0...(1 << 48 - 1)
    /// More steps than any check has.
    static let maxCheckStep: UInt32 = 255
    /// Ranges, or tables, of one check.
    static let maxCheckRanges = 4096
    /// Gaps in what a message says to have of all origins.
    static let maxGaps = 10_000
    /// Transactions in whose place one may stand.
    static let maxRestated = 10_000
    /// Of what a node, a topic or a table is called.
    static let maxNameBytes = 1000
    /// Changes of one transaction that name no row, and are kept. Of more nothing can be made either.
    static let maxNameless = 10_000

    /// Nil for what is no sequence.
    static func sequence(_ value: UInt64) -> Int64? {
        Int64(exactly: value).flatMap { sequences.contains($0) ? $0 : nil }
    }

    /// A number in a header. Nil where it is none, or not in the range.
    static func number(_ header: [UInt8]?, in range: ClosedRange<Int64>) -> Int64? {
        header.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }.flatMap { range.contains($0) ? $0 : nil }
    }

    /// Nil for a reading that no clock comes to: those of ``HybridTime/init(milliseconds:)`` have the uppermost bit clear, and
    /// the store keeps and compares readings as `Int64`.
    static func time(_ reading: UInt64) -> HybridTime? {
        reading <= UInt64(Int64.max) ? HybridTime(rawValue: reading) : nil
    }

    /// Nil where the sum runs over, or what it adds to did.
    static func sum(_ reading: UInt64?, _ step: UInt64) -> UInt64? {
        reading.flatMap { reading in
            let (sum, overflow) = reading.addingReportingOverflow(step)
            return overflow ? nil : sum
        }
    }

    static func isName(_ text: String) -> Bool { text.utf8.count <= maxNameBytes }
}

extension WireSnapshotHeader {
    /// - Throws: ``/MartletStore/StoreError`` with code `.corrupt` for values that no node has.
    func checkBounds() throws(StoreError) {
        guard WireBounds.isName(makerName), WireBounds.isName(topic), origins.allSatisfy({ WireBounds.isName($0.name) })
        else { throw SnapshotFormat.damaged("a name is too long") }
        guard WireBounds.milliseconds.contains(madeMs) else { throw SnapshotFormat.damaged("its time is out of range") }
        // Whoever collects tombstones has its clock there.
        guard WireBounds.time(hlc) != nil, collected <= hlc else {
            throw SnapshotFormat.damaged("its clock is out of range")
        }
        for position in positions {
            guard WireBounds.partitions.contains(position.partition), WireBounds.offsets.contains(position.next),
                position.origin.isEmpty || NodeID(bytes: position.origin) != nil,
                position.sequence == 0 || WireBounds.sequence(position.sequence) != nil,
                WireBounds.milliseconds.contains(position.appendedMs)
            else { throw SnapshotFormat.damaged("its position in a partition is out of range") }
        }
        for origin in origins { _ = try SequenceSet(origin) }
    }
}

extension WireEnvelope {
    /// Of a chunk in a snapshot. Nil for one that makes no sense.
    init?(_ chunk: WireSnapshotChunk) {
        guard let origin = NodeID(bytes: chunk.origin), let sequence = WireBounds.sequence(chunk.sequence),
            chunk.index < chunk.count, chunk.count <= WireBounds.maxChunks, !chunk.payload.isEmpty
        else { return nil }
        self.init(origin: origin, sequence: sequence, chunk: (Int(chunk.index), Int(chunk.count)))
    }
}
