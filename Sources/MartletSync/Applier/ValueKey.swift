import GRDB
import MartletStore

/// A foreign key whose target is found by the values that stand in it: one of several columns, or to other columns than
/// the integer key that each node gives on its own.
struct ValueKey {
    let entity: Entity
    let columns: [EntityColumn]
    let target: Entity
    /// The slots of the target's columns; nil for its integer key.
    let targetSlots: [Int?]
    private let targetColumns: [String]
    private let collations: [String]

    /// Nil where SQLite enforces nothing, or the key is to the target's own integer key, and so travels as the target's
    /// ID.
    init?(_ key: MartletStore.ForeignKey, of entity: Entity, in catalog: Catalog) {
        guard let target = catalog[key.target], key.columns.count == key.targetColumns.count else { return nil }
        let names = key.targetColumns.map { $0.lowercased() }
        if names.count == 1, names[0] == target.localKey?.lowercased() { return nil }
        func column(_ name: String, _ entity: Entity) -> EntityColumn? {
            entity.columns.first { $0.name.lowercased() == name.lowercased() }
        }
        let columns = key.columns.compactMap { column($0, entity) }
        guard columns.count == key.columns.count else { return nil }
        var slots: [Int?] = []
        for name in key.targetColumns {
            if let column = column(name, target) {
                slots.append(column.slot)
            } else if name.lowercased() == target.integerKey?.lowercased() {
                slots.append(nil)
            } else {
                return nil
            }
        }
        // Without such a key in the target, SQLite refuses every statement that would look at this one.
        let wanted = Set(names)
        let indexes = target.uniqueKeys.filter { index in
            let columns = Set(index.columns.map { $0.lowercased() })
            return index.condition == nil && !index.hasExpression && columns == wanted
        }
        // The table's own has the collations of the columns, as a target's key must.
        let index = indexes.first { $0.index.hasPrefix("sqlite_autoindex") } ?? indexes.first
        let identity = Set(target.identityColumns.map { $0.name.lowercased() })
        let isIntegerKey = names.count == 1 && names[0] == target.integerKey?.lowercased()
        guard index != nil || identity == wanted || isIntegerKey else { return nil }
        self.entity = entity
        self.target = target
        self.columns = columns
        targetSlots = slots
        targetColumns = key.targetColumns
        collations = names.map { name in
            guard let index, let place = index.columns.firstIndex(where: { $0.lowercased() == name }) else {
                return "BINARY"
            }
            return index.collations[place]
        }
    }

    var slots: [Int] { columns.map(\.slot) }

    /// The column that is null while the target is not here: the last one that may be. Nil where none may.
    var yielding: EntityColumn? {
        columns.last(where: entity.mayWait)
    }

    /// What a row that waits for such a target says of itself.
    var detail: String {
        let names = columns.map(\.name)
        return "\(entity.name).\(names.count == 1 ? names[0] : "(\(names.joined(separator: ", ")))")"
            + " refers to a row of \(target.name)"
    }

    /// Finds a target: the values as they stand in the key. As SQLite compares them: by the target's affinity and
    /// collation.
    var findTarget: String { "SELECT 1 FROM \(target.name.quotedName) WHERE \(isTarget)" }

    /// True of such a target.
    var isTarget: String {
        targetColumns.enumerated().map { "\($1.quotedName) = ?\($0 + 1)" }.joined(separator: " AND ")
    }

    /// True of the rows that refer to a target of these values.
    var isReferring: String {
        zip(columns, collations).enumerated().map {
            "\($1.0.name.quotedName) = ?\($0 + 1) COLLATE \($1.1.quotedName)"
        }.joined(separator: " AND ")
    }

    /// True of the rows that refer to no row that is there. As SQLite compares: by the target's affinity and collation.
    var isDangling: String {
        let own = columns.map { "\(entity.name.quotedName).\($0.name.quotedName)" }
        let match = zip(targetColumns, own).map { "_martlet_target.\($0.quotedName) = +\($1)" }
        return own.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
            + " AND NOT EXISTS (SELECT 1 FROM \(target.name.quotedName) AS _martlet_target WHERE "
            + match.joined(separator: " AND ") + ")"
    }

    /// What a row of the target has in the key.
    func targetValues(_ values: [Int: Value], _ row: Int64?) -> [Value] {
        targetSlots.map { slot in slot.map { values[$0] ?? .null } ?? row.map { .integer($0) } ?? .null }
    }

    /// What rows wait for that lack a target of these values.
    ///
    /// Values that a collation or an affinity may take for one have one such key. Where it takes them for two, somebody
    /// is woken for nothing.
    func wait(for values: [Value]) -> [UInt8] {
        // Not to be taken for a ``WaitKey/target(_:_:)``, which begins with a number.
        Array("k\(target.id)/\(targetColumns.joined(separator: "\0").lowercased()):".utf8)
            + StableID(values: values.map(\.folded)).bytes
    }

    /// True where both foreign keys refer to the same columns.
    func refersToSameColumns(as other: ValueKey) -> Bool {
        target.id == other.target.id && targetSlots == other.targetSlots
    }

    /// Whether a row that holds these values refers to itself, as those are what it has in the key. Not where one is
    /// text and the other is not: what they are to each other is known to SQLite alone.
    func refersToItself(_ values: [Value], having own: [Value]) -> Bool {
        !own.contains(.null) && mayTake(values, for: own)
            && zip(values, own).allSatisfy { $0 == $1 || ($0.textBytes == nil) == ($1.textBytes == nil) }
    }

    /// Whether a row with these values refers to one that has those in the key. Unlike what ``wait(for:)`` says, 'a'
    /// and 'A' are two where the key says so.
    func mayTake(_ values: [Value], for target: [Value]) -> Bool {
        guard wait(for: values) == wait(for: target) else { return false }
        return zip(zip(values, target), collations).allSatisfy { pair, collation in
            guard pair.0 != pair.1, let a = pair.0.textBytes, let b = pair.1.textBytes else { return true }
            return switch collation.uppercased() {
            case "BINARY": a == b
            case "RTRIM": a.withoutTrailingSpaces == b.withoutTrailingSpaces
            case "NOCASE": a.map(\.lowercasedASCII) == b.map(\.lowercasedASCII)
            // What a program's own collation takes for one is known to SQLite alone.
            default: true
            }
        }
    }
}

extension Entity {
    /// True of a column that can be null until its target comes: one that may be null, and names no row.
    func mayWait(_ column: EntityColumn) -> Bool {
        !column.isNotNull && !identityColumns.contains { $0.slot == column.slot }
    }
}

/// The foreign keys of tracked tables that are checked by value, by the tables at both of their ends.
struct ValueKeys {
    private(set) var byEntity: [Int64: [ValueKey]] = [:]
    private(set) var byTarget: [Int64: [ValueKey]] = [:]

    init(_ catalog: Catalog) {
        for entity in catalog.entities {
            for key in entity.foreignKeys.compactMap({ ValueKey($0, of: entity, in: catalog) }) {
                byEntity[entity.id, default: []].append(key)
                byTarget[key.target.id, default: []].append(key)
            }
        }
    }
}

extension Value {
    fileprivate var textBytes: [UInt8]? {
        switch self {
        case .text(let text): Array(text.utf8)
        case .rawText(let bytes): bytes
        default: nil
        }
    }

    /// One value for all that SQLite's own collations and affinities may take for one.
    fileprivate var folded: Value {
        switch self {
        case .integer(let number): .real(Double(number))
        case .text(let text): Self.folded(Array(text.utf8))
        case .rawText(let bytes): Self.folded(bytes)
        // 0.0 and -0.0.
        case .real(let number): .real(number + 0)
        default: self
        }
    }

    private static func folded(_ bytes: [UInt8]) -> Value {
        let bytes = bytes.withoutTrailingSpaces
        let text = String(decoding: bytes, as: UTF8.self)
        if let number = Double(text.trimmingPrefix(while: \.isWhitespace)) { return .real(number + 0) }
        return .rawText(bytes.map(\.lowercasedASCII))
    }
}

extension [UInt8] {
    fileprivate var withoutTrailingSpaces: [UInt8] {
        Array(prefix(upTo: lastIndex { $0 != UInt8(ascii: " ") }.map { $0 + 1 } ?? 0))
    }
}

extension UInt8 {
    fileprivate var lowercasedASCII: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}
