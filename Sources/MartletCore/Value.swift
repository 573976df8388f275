/// A value as SQLite stores it, without loss: 64-bit integers, doubles including infinities, text with NUL characters
/// or with bytes that are not UTF-8, and blobs. SQLite stores NaN as NULL.
public enum Value: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
    /// Text that is not valid UTF-8, byte for byte.
    case rawText([UInt8])
    /// A foreign key to a row whose integer key differs from node to node: the row's stable ID. Never stored in a
    /// user's table; it occurs in stable IDs and on the wire.
    indirect case reference(Reference)

    /// Compares doubles by their bits, so that every value equals itself, and 0.0 differs from -0.0.
    public static func == (a: Value, b: Value) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.integer(let x), .integer(let y)): x == y
        case (.real(let x), .real(let y)): x.bitPattern == y.bitPattern
        case (.text(let x), .text(let y)): x.utf8.elementsEqual(y.utf8)
        case (.blob(let x), .blob(let y)): x == y
        case (.rawText(let x), .rawText(let y)): x == y
        case (.reference(let x), .reference(let y)): x == y
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .integer(let value): hasher.combine(value)
        case .real(let value): hasher.combine(value.bitPattern)
        case .text(let value): hasher.combine(Array(value.utf8))
        case .blob(let value), .rawText(let value): hasher.combine(value)
        case .reference(let value): hasher.combine(value)
        }
    }

    public var isNull: Bool { if case .null = self { true } else { false } }
}

/// The stable ID of a row of another entity.
public struct Reference: Hashable, Sendable {
    /// The table that the foreign key points to.
    public var entity: String
    public var identity: StableID

    public init(entity: String, identity: StableID) {
        self.entity = entity
        self.identity = identity
    }
}
