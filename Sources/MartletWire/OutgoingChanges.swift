package import MartletCore
import SwiftProtobuf

/// The changes of a transaction of this node, or a run of them. Each is encoded as it is added, without an object for
/// itself, its columns or its values (docs/decisions/0070).
package struct OutgoingChanges {
    /// Returns the former names of a table that a value refers to.
    package typealias FormerNames = (_ entity: String) -> [String]

    /// A change without its columns.
    package struct Head {
        package var kind: ChangeKind
        package var entity: String
        package var formerNames: [String]
        package var identity: StableID
        package var time: HybridTime
        package var localID: Int64?
        /// For a delete: when the row's newest value was set.
        package var replaces: HybridTime

        package init(
            _ kind: ChangeKind, of entity: String, formerNames: [String], _ identity: StableID, at time: HybridTime,
            localID: Int64? = nil, replaces: HybridTime = .zero
        ) {
            self.kind = kind
            self.entity = entity
            self.formerNames = formerNames
            self.identity = identity
            self.time = time
            self.localID = localID
            self.replaces = replaces
        }
    }

    /// The columns of a change that is being added.
    package struct Columns {
        fileprivate var writer: FieldWriter
        fileprivate let field: UInt8
        fileprivate let targetNames: FormerNames

        /// Adds a column.
        ///
        /// - Parameters:
        ///   - formerNames: the column's.
        ///   - replaces: when the value was set that this one replaces.
        package mutating func append(
            _ name: String, formerNames: [String], _ value: Value, replaces: HybridTime
        ) throws {
            try writer.write(field, column: name, formerNames, value, replaces: replaces, targetNames)
        }
    }

    /// `Transaction.changes`, and nothing else.
    private var writer = FieldWriter()
    private let targetNames: FormerNames
    /// The time of the first change.
    package private(set) var first: HybridTime?
    /// The time of the last change.
    package private(set) var last: HybridTime?

    /// - Parameters:
    ///   - last: the time of the transaction's last change so far. Nil if there is none.
    ///   - formerNames: those of the tables that values refer to.
    package init(after last: HybridTime? = nil, formerNames: @escaping FormerNames = { _ in [] }) {
        self.last = last
        targetNames = formerNames
    }

    /// - Parameter changes: their steps are whole clock readings.
    package init(_ changes: [WireChange]) {
        self.init()
        for change in changes { append(change) }
    }

    package var isEmpty: Bool { first == nil }

    /// Adds a change. If that fails, the value is of no more use.
    ///
    /// - Parameter columns: adds the change's columns.
    package mutating func append(_ head: Head, columns: (inout Columns) throws -> Void) throws {
        let step = step(to: head.time)
        let targetNames = targetNames
        try writer.writeMessage(8) { writer in
            try writer.write(beginningOf: head, targetNames)
            var added = Columns(writer: writer, field: head.kind == .delete ? 5 : 4, targetNames: targetNames)
            // Two copies of the bytes would be copied when one of them changes.
            writer = FieldWriter(reserving: 0)
            try columns(&added)
            writer = added.writer
            writer.write(endOf: head, step: step)
        }
    }

    /// Adds a change without references from values that SQLite still holds. The bytes are those that
    /// ``append(_:columns:)`` adds for the same change.
    ///
    /// - Parameters:
    ///   - replaces: for a delete, when the row's newest value was set.
    ///   - fields: adds the values of the identity, and then the columns.
    package mutating func append(
        plain kind: ChangeKind, of names: EncodedNames, at time: HybridTime, replaces: HybridTime = .zero,
        fields: (inout PlainFields) throws -> Void
    ) rethrows {
        let step = step(to: time)
        try writer.writeMessage(8) { writer in
            var added = PlainFields(kind, of: names, &writer)
            try fields(&added)
            added.end(&writer)
            writer.write(6, step)
            writer.writeFixed(8, replaces.rawValue)
            writer.write(encoded: names.formerNames)
        }
    }

    /// Adds a change whose step is a whole clock reading.
    package mutating func append(_ change: WireChange) {
        var change = change
        change.clockStep = step(to: HybridTime(rawValue: change.clockStep))
        writer.writeMessage(8) { $0.write(change) }
    }

    private mutating func step(to time: HybridTime) -> UInt64 {
        defer {
            first = first ?? time
            last = time
        }
        return time.rawValue &- (last ?? time).rawValue
    }

    /// Returns the encoded transaction.
    ///
    /// - Parameter header: the transaction without its changes. It has the time of the first one, if there is one.
    package func encoded(in header: WireTransaction, as encoding: WireEncoding) throws -> [UInt8] {
        var whole = FieldWriter(reserving: writer.bytes.count + 128)
        whole.write(header, at: first?.rawValue ?? header.hlc, changes: writer.bytes)
        guard encoding == .json else { return whole.bytes }
        return try WireTransaction(serializedBytes: whole.bytes).jsonUTF8Bytes()
    }

    /// Returns the changes as a run of an encoded transaction. The concatenation of all runs and of
    /// ``WireFormat/closing(_:)`` is the encoded transaction.
    ///
    /// - Parameter header: the transaction without its changes for the first run, nil for the others.
    package func encodedRun(of header: WireTransaction?, as encoding: WireEncoding) throws -> [UInt8] {
        guard encoding == .json else {
            guard let header else { return writer.bytes }
            return try encoded(in: header, as: encoding)
        }
        var bytes: [UInt8] = []
        if var header {
            if let first { header.hlc = first.rawValue }
            // The header has a format, so it has at least one field.
            bytes = try header.jsonUTF8Bytes()
            bytes.removeLast()
            bytes += Array(",\"changes\":[".utf8)
        }
        for (index, change) in try WireTransaction(serializedBytes: writer.bytes).changes.enumerated() {
            if index > 0 || header == nil { bytes.append(UInt8(ascii: ",")) }
            bytes += try change.jsonUTF8Bytes() as [UInt8]
        }
        return bytes
    }
}
