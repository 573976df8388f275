import Foundation
import MartletCore
import SwiftProtobuf

/// Encodes transactions and changes with the bytes that Protobuf gives them
/// (https://protobuf.dev/programming-guides/encoding), in a fraction of the time that its visitors take: each local
/// change is encoded once, and that was a third of what enqueuing costs a processor (docs/decisions/0070).
///
/// The fields and their numbers are those of proto/martlet/v1/transaction.proto; a field that is not set, or has the
/// default of its type, takes no bytes. Tests compare the bytes with those of SwiftProtobuf.
struct FieldWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving count: Int = 256) { bytes.reserveCapacity(count) }

    // MARK: Messages

    mutating func write(_ transaction: WireTransaction) { write(transaction, at: transaction.hlc) }

    /// - Parameters:
    ///   - hlc: the clock of the transaction.
    ///   - changes: further changes, encoded.
    mutating func write(_ transaction: WireTransaction, at hlc: UInt64, changes: [UInt8] = []) {
        write(1, UInt64(transaction.format))
        write(2, transaction.origin)
        write(3, transaction.sequence)
        writeFixed(4, hlc)
        if transaction.hasAuthor { write(5, always: transaction.author) }
        writeSigned(6, transaction.timestampMs)
        write(7, transaction.originName)
        for change in transaction.changes { writeMessage(8) { $0.write(change) } }
        bytes.append(contentsOf: changes)
        write(9, transaction.clockNode)
        if !transaction.restates.isEmpty {
            writeMessage(10) { packed in
                for sequence in transaction.restates { Varint.append(sequence, to: &packed.bytes) }
            }
        }
        writeUnknown(transaction.unknownFields)
    }

    mutating func write(_ change: WireChange) {
        write(1, change.entity)
        write(2, UInt64(bitPattern: Int64(change.kind.rawValue)))
        for value in change.identity { writeMessage(3) { $0.write(value) } }
        for column in change.columns { writeMessage(4) { $0.write(column) } }
        for column in change.tombstone { writeMessage(5) { $0.write(column) } }
        write(6, change.clockStep)
        if change.hasLocalID { writeSigned(7, always: change.localID) }
        writeFixed(8, change.replaces)
        for name in change.formerEntities { write(9, always: name) }
        writeUnknown(change.unknownFields)
    }

    /// Writes what precedes the columns of a change.
    mutating func write(beginningOf change: OutgoingChanges.Head, _ formerNames: OutgoingChanges.FormerNames) throws {
        write(1, change.entity)
        write(2, UInt64(WireChangeKind(change.kind).rawValue))
        for value in try change.identity.values() { try writeMessage(3) { try $0.write(value, formerNames) } }
    }

    /// Writes what follows the columns of a change.
    mutating func write(endOf change: OutgoingChanges.Head, step: UInt64) {
        write(6, step)
        if let localID = change.localID { writeSigned(7, always: localID) }
        writeFixed(8, change.replaces.rawValue)
        for name in change.formerNames { write(9, always: name) }
    }

    /// Writes a column as a field of a change.
    mutating func write(
        _ field: UInt8, column name: String, _ formerNames: [String], _ value: Value, replaces: HybridTime,
        _ targetNames: OutgoingChanges.FormerNames
    ) throws {
        try writeMessage(field) { writer in
            writer.write(1, name)
            try writer.writeMessage(2) { try $0.write(value, targetNames) }
            writer.writeFixed(3, replaces.rawValue)
            for name in formerNames { writer.write(4, always: name) }
        }
    }

    /// - Parameter formerNames: those of the table, if the value is a reference.
    private mutating func write(_ value: Value, _ formerNames: OutgoingChanges.FormerNames) throws {
        guard case .reference(let reference) = value else { return value.withBorrowed { write($0) } }
        try writeMessage(7) { writer in
            writer.write(1, reference.entity)
            for value in try reference.identity.values() {
                try writer.writeMessage(2) { try $0.write(value) { _ in [] } }
            }
            for name in formerNames(reference.entity) { writer.write(3, always: name) }
        }
    }

    mutating func write(_ value: BorrowedValue) {
        switch value {
        case .null:
            writeTag(1, .varint)
            bytes.append(1)
        case .integer(let value): writeSigned(2, always: value)
        case .real(let value): writeFixed(3, always: value.bitPattern)
        case .text(let content): write(4, always: content)
        case .blob(let content): write(5, always: content)
        case .rawText(let content): write(6, always: content)
        }
    }

    /// Writes fields that are encoded already.
    mutating func write(encoded fields: [UInt8]) { bytes.append(contentsOf: fields) }

    private mutating func write(_ column: WireColumn) {
        write(1, column.name)
        if column.hasValue { writeMessage(2) { $0.write(column.value) } }
        writeFixed(3, column.replaces)
        for name in column.formerNames { write(4, always: name) }
        writeUnknown(column.unknownFields)
    }

    private mutating func write(_ value: WireValue) {
        switch value.kind {
        case .null(let value):
            writeTag(1, .varint)
            bytes.append(value ? 1 : 0)
        case .integer(let value): writeSigned(2, always: value)
        case .real(let value): writeFixed(3, always: value.bitPattern)
        case .text(let value): write(4, always: value)
        case .blob(let value): write(5, always: value)
        case .rawText(let value): write(6, always: value)
        case .reference(let value): writeMessage(7) { $0.write(value) }
        case nil: break
        }
        writeUnknown(value.unknownFields)
    }

    private mutating func write(_ reference: WireReference) {
        write(1, reference.entity)
        for value in reference.identity { writeMessage(2) { $0.write(value) } }
        for name in reference.formerEntities { write(3, always: name) }
        writeUnknown(reference.unknownFields)
    }

    /// What a newer program added to a message that was decoded here.
    private mutating func writeUnknown(_ fields: UnknownStorage) {
        if !fields.data.isEmpty { bytes.append(contentsOf: fields.data) }
    }

    // MARK: Fields

    private enum WireType: UInt8 {
        case varint = 0
        case fixed64 = 1
        case counted = 2
    }

    /// All numbers are below 16, and take one byte.
    private mutating func writeTag(_ field: UInt8, _ type: WireType) { bytes.append(field << 3 | type.rawValue) }

    mutating func write(_ field: UInt8, _ value: UInt64) {
        guard value != 0 else { return }
        writeTag(field, .varint)
        Varint.append(value, to: &bytes)
    }

    private mutating func writeSigned(_ field: UInt8, _ value: Int64) {
        if value != 0 { writeSigned(field, always: value) }
    }

    private mutating func writeSigned(_ field: UInt8, always value: Int64) {
        writeTag(field, .varint)
        Varint.append(UInt64(zigzag: value), to: &bytes)
    }

    mutating func writeFixed(_ field: UInt8, _ value: UInt64) {
        if value != 0 { writeFixed(field, always: value) }
    }

    private mutating func writeFixed(_ field: UInt8, always value: UInt64) {
        writeTag(field, .fixed64)
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func write(_ field: UInt8, _ text: String) {
        if !text.isEmpty { write(field, always: text) }
    }

    mutating func write(_ field: UInt8, always text: String) {
        writeTag(field, .counted)
        var text = text
        text.withUTF8 { utf8 in
            Varint.append(UInt64(utf8.count), to: &bytes)
            bytes.append(contentsOf: utf8)
        }
    }

    private mutating func write(_ field: UInt8, _ data: Data) {
        if !data.isEmpty { write(field, always: data) }
    }

    private mutating func write(_ field: UInt8, always data: some ContiguousBytes) {
        writeTag(field, .counted)
        data.withUnsafeBytes { content in
            Varint.append(UInt64(content.count), to: &bytes)
            bytes.append(contentsOf: content)
        }
    }

    /// Writes a message as a field. How many bytes it has is known only when it is written: nearly always fewer than
    /// 128, which one byte can say.
    mutating func writeMessage(_ field: UInt8, _ content: (inout FieldWriter) throws -> Void) rethrows {
        writeTag(field, .counted)
        let place = bytes.count
        bytes.append(0)
        try content(&self)
        let count = bytes.count - place - 1
        guard count >= 0x80 else {
            bytes[place] = UInt8(count)
            return
        }
        var length: [UInt8] = []
        Varint.append(UInt64(count), to: &length)
        bytes.replaceSubrange(place...place, with: length)
    }
}

extension UInt64 {
    /// Returns the form in which Protobuf encodes signed numbers: 0, -1, 1, -2 and so on.
    fileprivate init(zigzag number: Int64) { self = UInt64(bitPattern: number << 1 ^ number >> 63) }
}
