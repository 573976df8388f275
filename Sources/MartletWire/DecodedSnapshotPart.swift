package import MartletCore
import SwiftProtobuf

/// A part of a snapshot, with everything that can be computed from it without the store. That can happen on any thread,
/// before the part is applied.
package struct DecodedSnapshotPart: Sendable {
    /// The part. Contents are without their rows.
    package let kind: WireSnapshotPart.OneOf_Kind
    /// The rows of the contents.
    package let rows: SnapshotRows
    /// The SHA-256 of the part's bytes.
    package let hash: [UInt8]

    /// - Throws: ``/MartletCore/StoreError`` with code `.newerVersion` or `.corrupt`.
    package init(_ bytes: [UInt8]) throws(StoreError) {
        hash = SnapshotFormat.hash(bytes)
        if let (rest, places) = try Self.split(bytes) {
            kind = try SnapshotFormat.decode(rest)
            rows = try SnapshotRows(bytes, places)
            return
        }
        let whole = try SnapshotFormat.decode(bytes)
        guard case .contents(var contents) = whole else {
            kind = whole
            rows = SnapshotRows([])
            return
        }
        rows = SnapshotRows(contents.rows)
        contents.rows = []
        kind = .contents(contents)
    }

    /// Returns the part without the rows of its contents, and where these are. Nil if the part is not of the form that
    /// ``SnapshotFormat`` encodes: it has no contents, or anything but the version beside them, or fields that only
    /// Protobuf can skip.
    private static func split(_ bytes: [UInt8]) throws(StoreError) -> (rest: [UInt8], rows: [Range<Int>])? {
        do throws(WireError) {
            try WireShape.snapshotPart.checkFields(bytes)
        } catch {
            throw SnapshotFormat.undecodable
        }
        do throws(WireError) {
            var fields = ProtobufFields(0..<bytes.count)
            var rest: [UInt8] = []
            var found: Range<Int>?
            while let field = try fields.next(in: bytes) {
                switch (field.number, field.content) {
                case (SnapshotFormat.contentsField, let content?) where found == nil: found = content
                case (SnapshotFormat.versionField, nil): rest += bytes[field.whole]
                default: return nil
                }
            }
            guard let contents = found else { return nil }
            var others: [UInt8] = []
            var rows: [Range<Int>] = []
            var parts = ProtobufFields(contents)
            while let field = try parts.next(in: bytes) {
                if field.number == SnapshotFormat.rowsField, let content = field.content {
                    rows.append(content)
                } else {
                    others += bytes[field.whole]
                }
            }
            Varint.append(SnapshotFormat.contentsField << 3 | 2, to: &rest)
            Varint.append(counted: others, to: &rest)
            return (rest, rows)
        } catch {
            return nil
        }
    }
}

/// The rows of a part of a snapshot. Nearly all are plain, and decoded as such; they are decoded as messages only if
/// they have to be merged.
package struct SnapshotRows: Sendable {
    private enum Row {
        /// A plain row, and where it is.
        case plain(PlainSnapshotRow, Range<Int>)
        case message(WireSnapshotRow)
    }

    /// The part.
    private let bytes: [UInt8]
    private let rows: [Row]

    /// Creates rows of which none is plain.
    package init(_ messages: [WireSnapshotRow]) {
        bytes = []
        rows = messages.map { .message($0) }
    }

    fileprivate init(_ bytes: [UInt8], _ places: [Range<Int>]) throws(StoreError) {
        self.bytes = bytes
        var rows: [Row] = []
        rows.reserveCapacity(places.count)
        for place in places {
            if let plain = bytes.withUnsafeBytes({ PlainSnapshotRow(encoded: $0, place) }) {
                rows.append(.plain(plain, place))
            } else {
                rows.append(.message(try Self.message(bytes, place)))
            }
        }
        self.rows = rows
    }

    private static func message(_ bytes: [UInt8], _ place: Range<Int>) throws(StoreError) -> WireSnapshotRow {
        do {
            return try WireSnapshotRow(serializedBytes: Array(bytes[place]))
        } catch {
            throw SnapshotFormat.undecodable
        }
    }

    package var indices: Range<Int> { rows.indices }
    package var count: Int { rows.count }

    /// Returns the row if it is plain.
    package func plain(_ index: Int) -> PlainSnapshotRow? {
        if case .plain(let row, _) = rows[index] { row } else { nil }
    }

    /// Returns the row as a message.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` if it can't be decoded.
    package func message(_ index: Int) throws(StoreError) -> WireSnapshotRow {
        switch rows[index] {
        case .plain(_, let place): return try Self.message(bytes, place)
        case .message(let row): return row
        }
    }
}
