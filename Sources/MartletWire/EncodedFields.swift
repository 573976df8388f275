import MartletCore

/// Reads the fields of one encoded message. Nil from any function: the bytes are not of the expected form.
struct EncodedFields {
    private let bytes: UnsafeRawBufferPointer
    /// Where the next field begins, or the rest of the current one.
    private(set) var place = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { place >= bytes.count }

    /// Reads a tag. Nil also for a field with a number above 15: its tag takes more than one byte.
    mutating func tag() -> UInt8? {
        guard place < bytes.count, bytes[place] < 0x80 else { return nil }
        defer { place += 1 }
        return bytes[place]
    }

    mutating func number() -> UInt64? { Varint.read(bytes, &place) }

    mutating func fixed64() -> UInt64? {
        guard bytes.count - place >= 8 else { return nil }
        defer { place += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
    }

    mutating func content() -> UnsafeRawBufferPointer? {
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
    static func text(_ bytes: UnsafeRawBufferPointer) -> String? {
        var text = String(decoding: bytes, as: UTF8.self)
        return text.withUTF8 { UnsafeRawBufferPointer($0).areEqual(to: bytes) } ? text : nil
    }
}

extension Int64 {
    /// Creates a number from the form in which Protobuf encodes signed ones: 0, -1, 1, -2 and so on.
    init(zigzag number: UInt64) {
        self = Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
    }
}
