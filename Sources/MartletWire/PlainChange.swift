package import MartletCore

/// A change of a transaction that has nothing but what nearly all changes have: a row identity, a known kind, and a
/// value for each column. No former names. Its tombstone is only in the message.
package struct PlainChange {
    package private(set) var entity = ""
    package let kind: ChangeKind
    package private(set) var identityValues: [Value] = []
    /// The name of each column.
    package private(set) var names: [String] = []
    package private(set) var columns: [RemoteColumn] = []
    package private(set) var clockStep: UInt64 = 0
    package private(set) var localID: Int64?
    package private(set) var replaces: UInt64 = 0

    /// The tags of the fields of `Change` that a plain change may have: number and type. Each takes one byte.
    private enum Tag {
        static let entity: UInt8 = 1 << 3 | 2
        static let kind: UInt8 = 2 << 3
        static let identity: UInt8 = 3 << 3 | 2
        static let column: UInt8 = 4 << 3 | 2
        static let tombstone: UInt8 = 5 << 3 | 2
        static let clockStep: UInt8 = 6 << 3
        static let localID: UInt8 = 7 << 3
        static let replaces: UInt8 = 8 << 3 | 1
    }

    /// The tags of the fields of `Column`.
    private enum ColumnTag {
        static let name: UInt8 = 1 << 3 | 2
        static let value: UInt8 = 2 << 3 | 2
        static let replaces: UInt8 = 3 << 3 | 1
    }

    /// Reads an encoded `Change`. To decode it as a message takes several times as long.
    ///
    /// - Parameter known: the names in changes that were read before.
    /// - Returns: nil for a change that is not plain, or not valid. What is wrong with it is found where its message is
    ///   decoded.
    package init?(encoded bytes: UnsafeRawBufferPointer, _ known: inout KnownNames) {
        var fields = EncodedFields(bytes)
        var kind: ChangeKind?
        var names: NameList?
        var seen: UInt16 = 0
        while !fields.isAtEnd {
            guard let tag = fields.tag() else { return nil }
            switch tag {
            case Tag.identity, Tag.column, Tag.tombstone: break
            default:
                // A field that is there twice means the last one.
                let bit = UInt16(1) << UInt16(tag >> 3)
                guard seen & bit == 0 else { return nil }
                seen |= bit
            }
            switch tag {
            case Tag.entity:
                guard let bytes = fields.content(), let name = known.entity(bytes) else { return nil }
                entity = name
            case Tag.kind:
                guard let number = fields.number().flatMap(Int.init(exactly:)),
                    let known = WireChangeKind(rawValue: number).flatMap(ChangeKind.init)
                else {
                    return nil
                }
                kind = known
            case Tag.identity:
                guard let value = fields.value() else { return nil }
                identityValues.append(value)
            case Tag.column:
                var list = names ?? known.list(of: kind)
                names = nil
                guard let content = fields.content(), let column = Self.column(content, &list) else { return nil }
                // The change before may have had many more columns. A column takes eight bytes or more.
                if columns.isEmpty { columns.reserveCapacity(min(list.expectedCount, bytes.count / 8)) }
                columns.append(column)
                names = list
            case Tag.tombstone:
                var list = NameList([])
                guard let content = fields.content(), Self.column(content, &list) != nil else { return nil }
            case Tag.clockStep:
                guard let number = fields.number() else { return nil }
                clockStep = number
            case Tag.localID:
                guard let number = fields.number() else { return nil }
                localID = Int64(zigzag: number)
            case Tag.replaces:
                guard let number = fields.fixed64() else { return nil }
                replaces = number
            default: return nil
            }
        }
        // NULL, and NaN with it, is no part of an identity.
        guard let kind, !identityValues.isEmpty, !identityValues.contains(where: \.isNull) else { return nil }
        self.kind = kind
        if let names { self.names = known.note(names, of: kind) }
    }

    private static func column(_ bytes: UnsafeRawBufferPointer, _ names: inout NameList) -> RemoteColumn? {
        var fields = EncodedFields(bytes)
        var hasName = false
        var value: Value?
        var replaces: UInt64?
        while !fields.isAtEnd {
            guard let tag = fields.tag() else { return nil }
            switch tag {
            case ColumnTag.name:
                guard !hasName, let name = fields.content(), names.append(name) else { return nil }
                hasName = true
            case ColumnTag.value:
                guard value == nil, let found = fields.value() else { return nil }
                value = found
            case ColumnTag.replaces:
                guard replaces == nil, let number = fields.fixed64() else { return nil }
                replaces = number
            default: return nil
            }
        }
        guard hasName, let value else { return nil }
        return RemoteColumn(slot: 0, value: value, replaces: HybridTime(rawValue: replaces ?? 0))
    }
}

/// The names in the changes that were read last. Most changes have the same ones as an earlier change: comparing them
/// takes less time than creating them, and whoever looks up a list of names finds the same array again.
package struct KnownNames {
    private var entity = ""
    private var inserted: [String] = []
    private var updated: [String] = []

    package init() {}

    fileprivate mutating func entity(_ bytes: UnsafeRawBufferPointer) -> String? {
        if entity.hasBytes(bytes) { return entity }
        guard let name = EncodedFields.text(bytes) else { return nil }
        entity = name
        return name
    }

    /// The names of an update, or of another change.
    private subscript(isUpdate: Bool) -> [String] {
        get { isUpdate ? updated : inserted }
        set { if isUpdate { updated = newValue } else { inserted = newValue } }
    }

    fileprivate func list(of kind: ChangeKind?) -> NameList { NameList(self[kind == .update]) }

    fileprivate mutating func note(_ list: NameList, of kind: ChangeKind) -> [String] {
        self[kind == .update] = list.names
        return self[kind == .update]
    }

    /// Returns the array that is known for these names.
    mutating func shared(_ names: [String], of kind: WireChangeKind) -> [String] {
        if self[kind == .update] != names { self[kind == .update] = names }
        return self[kind == .update]
    }
}

/// The column names of a change while it is read.
private struct NameList {
    private let known: [String]
    /// How many names are those of `known`.
    private var count = 0
    /// All names, from the first on that is not the one in `known`.
    private var others: [String]?

    init(_ known: [String]) { self.known = known }

    var expectedCount: Int { known.count }

    /// Returns false if the bytes are no text.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if others == nil, count < known.count, known[count].hasBytes(bytes) {
            count += 1
            return true
        }
        guard let name = EncodedFields.text(bytes) else { return false }
        if others == nil { others = Array(known.prefix(count)) }
        others?.append(name)
        return true
    }

    var names: [String] { others ?? (count == known.count ? known : Array(known.prefix(count))) }
}
