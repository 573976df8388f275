/// The identity of a row on every node: the values of its identity columns, or a UUID that Martlet assigned.
///
/// Stored in a canonical encoding, so that equal IDs have equal bytes wherever they were made. The encoding is part of
/// the on-disk format. Each value has a tag byte (0 null, 1 integer, 2 real, 3 text, 4 blob, 5 raw text, 6 reference).
/// Numbers follow in eight big-endian bytes; texts and blobs follow as a length (a base-128 varint) and their bytes; a
/// reference follows as its entity and its identity, each with a length.
public struct StableID: Hashable, Sendable {
    /// The canonical encoding.
    public let bytes: [UInt8]

    /// Creates an ID from a canonical encoding that ``init(values:)`` made earlier.
    public init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    public init(values: [Value]) {
        var bytes: [UInt8] = []
        // Most IDs are a UUID, encoded as a blob.
        bytes.reserveCapacity(values.count * 18)
        for value in values { Self.append(value, to: &bytes) }
        self.bytes = bytes
    }

    /// How deep references may nest in the ID of a row to which others may refer: messages with deeper IDs could not be
    /// decoded. SwiftProtobuf gives up at 100 messages in each other, and each reference takes two.
    package static let maxNesting = 32

    /// Creates the ID that the values of a row's identity columns form. Nil if they form none: an ID needs values, NULL
    /// equals nothing, and rows that refer to rows of their own table could nest without end.
    ///
    /// - Parameter mayBePart: true if references to the row may be part of other IDs.
    package init?(columns values: [Value], mayBePart: Bool) {
        guard !values.isEmpty, !values.contains(.null) else { return nil }
        if mayBePart, values.contains(where: { $0.nesting > Self.maxNesting }) { return nil }
        self.init(values: values)
    }

    /// Creates the ID that the values of a row's identity columns form. Nil if one of them is NULL, which equals
    /// nothing.
    package init?(columns count: Int, _ value: (Int) -> BorrowedValue) {
        guard count > 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 18)
        for index in 0..<count {
            let value = value(index)
            if case .null = value { return nil }
            Self.append(value, to: &bytes)
        }
        self.bytes = bytes
    }

    private static func append(_ tag: UInt8, _ content: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        bytes.append(tag)
        Varint.append(UInt64(content.count), to: &bytes)
        bytes.append(contentsOf: content)
    }

    /// Returns whether the ID is made of this row's, at any depth.
    package func contains(_ reference: Reference) -> Bool {
        (try? values())?.contains { value in
            guard case .reference(let part) = value else { return false }
            return part == reference || part.identity.contains(reference)
        } ?? false
    }

    /// How deep references nest in the ID. 0 if there are none.
    fileprivate var nesting: Int { (try? values())?.map(\.nesting).max() ?? 0 }

    /// Returns whether both IDs consist of the same values.
    public static func == (a: StableID, b: StableID) -> Bool {
        a.bytes.withUnsafeBytes { a in b.bytes.withUnsafeBytes { a.areEqual(to: $0) } }
    }

    /// Hashes all bytes in one call. An array would pass them to the hasher one by one.
    public func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// Creates the ID of a row from the UUID that Martlet assigned to it.
    public init(hidden uuid: [UInt8]) {
        self.init(values: [.blob(uuid)])
    }

    /// Returns the values that this ID encodes.
    ///
    /// - Throws: ``StoreError`` with code `.corrupt` if the bytes are not a canonical encoding.
    public func values() throws(StoreError) -> [Value] {
        var reader = Reader(bytes: bytes[...])
        var values: [Value] = []
        while !reader.bytes.isEmpty { values.append(try reader.value()) }
        return values
    }

    private static func append(_ value: Value, to bytes: inout [UInt8]) {
        guard case .reference(let reference) = value else { return value.withBorrowed { append($0, to: &bytes) } }
        bytes.append(6)
        Varint.append(counted: Array(reference.entity.utf8), to: &bytes)
        Varint.append(counted: reference.identity.bytes, to: &bytes)
    }

    private static func append(_ value: BorrowedValue, to bytes: inout [UInt8]) {
        switch value {
        case .null: bytes.append(0)
        case .integer(let value):
            bytes.append(1)
            appendBigEndian(UInt64(bitPattern: value), to: &bytes)
        case .real(let value):
            bytes.append(2)
            appendBigEndian((value + 0).bitPattern, to: &bytes)
        case .text(let content): append(3, content, to: &bytes)
        case .blob(let content): append(4, content, to: &bytes)
        case .rawText(let content): append(5, content, to: &bytes)
        }
    }

    private static func appendBigEndian(_ value: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private struct Reader {
        var bytes: ArraySlice<UInt8>

        mutating func value() throws(StoreError) -> Value {
            guard let tag = bytes.popFirst() else { throw Self.corrupt }
            switch tag {
            case 0: return .null
            case 1: return .integer(Int64(bitPattern: try bigEndian()))
            case 2: return .real(Double(bitPattern: try bigEndian()))
            case 3:
                guard let text = String(validating: try counted(), as: UTF8.self) else { throw Self.corrupt }
                return .text(text)
            case 4: return .blob(Array(try counted()))
            case 5: return .rawText(Array(try counted()))
            case 6:
                guard let entity = String(validating: try counted(), as: UTF8.self) else { throw Self.corrupt }
                return .reference(Reference(entity: entity, identity: StableID(bytes: Array(try counted()))))
            default: throw Self.corrupt
            }
        }

        mutating func bigEndian() throws(StoreError) -> UInt64 {
            guard bytes.count >= 8 else { throw Self.corrupt }
            defer { bytes = bytes.dropFirst(8) }
            return bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }

        mutating func counted() throws(StoreError) -> ArraySlice<UInt8> {
            var count: UInt64 = 0
            var shift: UInt64 = 0
            while true {
                guard let byte = bytes.popFirst(), shift < 63 else { throw Self.corrupt }
                count |= UInt64(byte & 0x7f) << shift
                if byte < 0x80 { break }
                shift += 7
            }
            guard count <= UInt64(bytes.count) else { throw Self.corrupt }
            defer { bytes = bytes.dropFirst(Int(count)) }
            return bytes.prefix(Int(count))
        }

        static var corrupt: StoreError {
            StoreError(
                .corrupt, "A stable ID in the store can't be decoded.", hint: "Run `martlet doctor` on the store.")
        }
    }
}

extension Value {
    fileprivate var nesting: Int {
        if case .reference(let reference) = self { reference.identity.nesting + 1 } else { 0 }
    }
}
