package import MartletCore

/// A row of a snapshot that was inserted with all of its columns and never changed, as nearly all rows are.
package struct PlainSnapshotRow: Sendable {
    /// The table's place in the header.
    package let entity: Int
    package let identity: StableID
    /// The values that the identity was made of.
    package let identityValues: [Value]
    /// One value for each of the table's columns, in the header's order.
    package let values: [Value]
    /// When the row was inserted: the hybrid logical clock, and the node's place in the header. The lowest time for a
    /// row that existed before its table was attached.
    package let time: HybridTime
    package let node: Int
    package let localID: Int64?

    /// The tags of the fields of `SnapshotRow` that a plain row may have: number and type.
    private enum Tag {
        static let entity: UInt64 = 1 << 3
        static let identity: UInt64 = 2 << 3 | 2
        static let values: UInt64 = 3 << 3 | 2
        static let inserted: UInt64 = 5 << 3 | 2
        static let localID: UInt64 = 8 << 3
    }

    /// Reads an encoded `SnapshotRow`. To decode it as a message takes several times as long.
    ///
    /// - Parameter place: where the row is in the bytes.
    /// - Returns: nil for a row that is not plain, or not valid. What is wrong with it is found where its message is
    ///   decoded, and merged.
    init?(encoded bytes: UnsafeRawBufferPointer, _ place: Range<Int>) {
        var fields = EncodedFields(UnsafeRawBufferPointer(rebasing: bytes[place]))
        var entity: UInt64?
        var identityValues: [Value] = []
        var values: [Value] = []
        var inserted: (time: UInt64, node: UInt64)?
        var localID: Int64?
        while !fields.isAtEnd {
            guard let tag = fields.number() else { return nil }
            switch tag {
            case Tag.entity:
                guard entity == nil, let number = fields.number(), number <= UInt32.max else { return nil }
                entity = number
            case Tag.identity:
                guard let value = fields.value() else { return nil }
                identityValues.append(value)
            case Tag.values:
                guard let value = fields.value() else { return nil }
                values.append(value)
            case Tag.inserted:
                guard inserted == nil, let stamp = fields.stamp() else { return nil }
                inserted = stamp
            case Tag.localID:
                guard localID == nil, let number = fields.number() else { return nil }
                localID = Int64(zigzag: number)
            default: return nil
            }
        }
        // NULL, and NaN with it, is no part of an identity.
        guard let inserted, !identityValues.isEmpty, !identityValues.contains(where: \.isNull) else { return nil }
        self.entity = Int(entity ?? 0)
        identity = StableID(values: identityValues)
        self.identityValues = identityValues
        self.values = values
        time = HybridTime(rawValue: inserted.time)
        node = Int(inserted.node)
        self.localID = localID
    }
}

/// Reads the fields of one encoded message. Nil from any function: the bytes are not of the expected form.
private struct EncodedFields {
    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { place >= bytes.count }

    mutating func number() -> UInt64? { Varint.read(bytes, &place) }

    private mutating func fixed64() -> UInt64? {
        guard bytes.count - place >= 8 else { return nil }
        defer { place += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
    }

    private mutating func content() -> UnsafeRawBufferPointer? {
        guard let count = number(), count <= UInt64(bytes.count - place) else { return nil }
        defer { place += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[place..<place + Int(count)])
    }

    /// Reads a `SnapshotStamp`.
    mutating func stamp() -> (time: UInt64, node: UInt64)? {
        guard let encoded = content() else { return nil }
        var fields = EncodedFields(encoded)
        var stamp: (time: UInt64, node: UInt64) = (0, 0)
        while !fields.isAtEnd {
            guard let tag = fields.number() else { return nil }
            switch tag {
            case 1 << 3 | 1:
                guard let time = fields.fixed64() else { return nil }
                stamp.time = time
            case 2 << 3:
                guard let node = fields.number(), node <= UInt32.max else { return nil }
                stamp.node = node
            default: return nil
            }
        }
        return stamp
    }

    /// The deepest nesting of references in an identity.
    private static let maxDepth = 8

    /// Reads a `Value`, as ``WireValue/value()`` returns it.
    mutating func value(depth: Int = 0) -> Value? {
        guard let encoded = content() else { return nil }
        var fields = EncodedFields(encoded)
        guard let value = fields.kind(depth), fields.isAtEnd else { return nil }
        return value
    }

    private mutating func kind(_ depth: Int) -> Value? {
        guard let tag = number() else { return nil }
        switch tag {
        case 1 << 3:
            return number() == nil ? nil : .null
        case 2 << 3:
            guard let encoded = number() else { return nil }
            return .integer(Int64(zigzag: encoded))
        case 3 << 3 | 1:
            guard let bits = fixed64() else { return nil }
            let real = Double(bitPattern: bits)
            return real.isNaN ? .null : .real(real + 0)
        case 4 << 3 | 2:
            guard let bytes = content(), let text = Self.text(bytes) else { return nil }
            return .text(text)
        case 5 << 3 | 2:
            guard let bytes = content() else { return nil }
            return .blob(Array(bytes))
        case 6 << 3 | 2:
            guard let bytes = content() else { return nil }
            if let text = Self.text(bytes) { return .text(text) }
            return .rawText(Array(bytes))
        case 7 << 3 | 2:
            guard depth < Self.maxDepth, let bytes = content() else { return nil }
            return Self.reference(bytes, depth + 1)
        default:
            return nil
        }
    }

    /// Reads a `Reference` to a table without former names.
    private static func reference(_ bytes: UnsafeRawBufferPointer, _ depth: Int) -> Value? {
        var fields = EncodedFields(bytes)
        var entity: String?
        var identity: [Value] = []
        while !fields.isAtEnd {
            guard let tag = fields.number() else { return nil }
            switch tag {
            case 1 << 3 | 2:
                guard entity == nil, let bytes = fields.content(), let name = text(bytes) else { return nil }
                entity = name
            case 2 << 3 | 2:
                guard let value = fields.value(depth: depth) else { return nil }
                identity.append(value)
            default: return nil
            }
        }
        guard let name = entity else { return nil }
        return .reference(Reference(entity: name, identity: StableID(values: identity)))
    }

    /// Returns nil if the bytes are not UTF-8. `String(validating:as:)` is slower.
    private static func text(_ bytes: UnsafeRawBufferPointer) -> String? {
        var text = String(decoding: bytes, as: UTF8.self)
        return text.withUTF8 { $0.elementsEqual(bytes) } ? text : nil
    }
}

extension Int64 {
    /// Creates a number from the form in which Protobuf encodes signed ones: 0, -1, 1, -2 and so on.
    fileprivate init(zigzag number: UInt64) {
        self = Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
    }
}
