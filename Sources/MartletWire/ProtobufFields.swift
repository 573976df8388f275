/// Iterates over the fields of an encoded Protobuf message without interpreting them
/// (https://protobuf.dev/programming-guides/encoding).
///
/// A message may have many fields for its size, and each takes a hundred times as much memory once it is decoded. So
/// code that decodes input from outside counts the fields first, or decodes one part at a time.
package struct ProtobufFields {
    package struct Field {
        package var number: UInt64
        /// The range of the field, including its tag.
        package var whole: Range<Int>
        /// The content of a length-delimited field: bytes, a string or another message. Nil for numbers.
        package var content: Range<Int>?
    }

    private var position: Int
    private let end: Int
    /// Set by ``next(in:)`` if the bytes end in the middle of a field: at least how many more bytes it has, and its
    /// number as far as that is known.
    private(set) var missing: (number: UInt64, bytes: Int)?

    package init(_ range: Range<Int>) { (position, end) = (range.lowerBound, range.upperBound) }

    /// - Throws: ``WireError`` if the bytes are not valid fields.
    package mutating func next(in bytes: [UInt8]) throws(WireError) -> Field? {
        guard position < end else { return nil }
        let start = position
        let tag = try varint(bytes)
        var field = Field(number: tag >> 3, whole: start..<start)
        switch tag & 7 {
        case 0: _ = try varint(bytes)
        case 1: try skip(8, of: field.number)
        case 2:
            let length = try varint(bytes)
            try skip(length, of: field.number)
            field.content = position - Int(length)..<position
        case 5: try skip(4, of: field.number)
        default: throw WireError("The payload is not a transaction: field \(field.number) has an unknown type.")
        }
        field.whole = start..<position
        return field
    }

    private static let cut = WireError("The payload is not a transaction: it ends in the middle of a field.")

    private mutating func skip(_ count: UInt64, of field: UInt64) throws(WireError) {
        let rest = UInt64(end - position)
        guard count <= rest else {
            missing = (field, Int(clamping: count - rest))
            throw Self.cut
        }
        position += Int(count)
    }

    private mutating func varint(_ bytes: [UInt8]) throws(WireError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            guard position < end else {
                missing = (0, 1)
                throw Self.cut
            }
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw WireError("The payload is not a transaction: a number has too many bytes.")
    }
}

/// The kinds of messages, with the fields that are messages themselves. Counting fields descends into these.
package enum WireShape {
    case change, column, value, reference
    case snapshotPart, header, origin, entity, schemaColumn, contents, row, exception, tombstone
    case check, checkEntity
    /// A message that contains only numbers, strings and bytes.
    case plain

    /// Returns the kind of message in a field, as defined in proto/martlet/v1. Returns nil if the field is not a
    /// message.
    private func part(_ field: UInt64) -> WireShape? {
        switch (self, field) {
        case (.change, 3): .value
        case (.change, 4), (.change, 5): .column
        case (.column, 2): .value
        case (.value, 7): .reference
        case (.reference, 2): .value
        case (.snapshotPart, 2), (.check, 4): .header
        case (.snapshotPart, 3), (.check, 6): .contents
        case (.header, 8): .plain
        case (.header, 9): .origin
        case (.header, 10): .entity
        case (.origin, 4): .plain
        case (.entity, 3): .schemaColumn
        case (.contents, 1): .tombstone
        case (.contents, 2): .row
        case (.contents, 4): .plain
        case (.row, 2), (.row, 3), (.tombstone, 2): .value
        case (.row, 7): .exception
        case (.check, 5), (.check, 7): .checkEntity
        case (.checkEntity, 3): .plain
        default: nil
        }
    }

    /// The most fields of a message that is decoded as a whole; no valid message has so many. Decoded, each takes 300
    /// bytes at most.
    package static let maxFields = 1_000_000
    /// The nesting limit, which no valid message reaches: SwiftProtobuf's own limit.
    private static let maxDepth = 100

    /// Rejects a message that would take far more memory decoded than encoded.
    ///
    /// - Throws: ``WireError`` if it has more than ``maxFields`` fields, or if the bytes are not valid fields.
    package func checkFields(_ bytes: [UInt8]) throws(WireError) {
        // A field takes at least two bytes.
        guard bytes.count > 2 * Self.maxFields else { return }
        var count = 0
        // The messages whose fields are still being counted, each nested in the one before it.
        var open = [(shape: self, fields: ProtobufFields(0..<bytes.count))]
        while let last = open.indices.last {
            let shape = open[last].shape
            guard let field = try open[last].fields.next(in: bytes) else {
                open.removeLast()
                continue
            }
            count += 1
            guard count <= Self.maxFields else {
                throw WireError("The message has more than \(Self.maxFields) fields.")
            }
            if let part = shape.part(field.number), let content = field.content, open.count < Self.maxDepth {
                open.append((part, ProtobufFields(content)))
            }
        }
    }
}
