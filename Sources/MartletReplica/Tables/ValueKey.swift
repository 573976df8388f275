import GRDB
package import MartletCore
package import MartletStore

/// A foreign key whose target is found by the key's values: it has several columns, or refers to other columns than the
/// integer key that each node assigns.
package struct ValueKey {
    package let entity: Entity
    package let columns: [EntityColumn]
    package let target: Entity
    /// The slots of the target's columns; nil for its integer key.
    package let targetSlots: [Int?]
    private let targetColumns: [String]
    private let collations: [String]
    private let targetAffinities: [Affinity]

    /// Nil if SQLite enforces nothing, or if the key refers to the target's local integer key, and so is sent as the
    /// target's ID.
    package init?(_ key: MartletStore.ForeignKey, of entity: Entity, in catalog: Catalog) {
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
        // Without such a unique key in the target, SQLite refuses every statement that would check this foreign key.
        let wanted = Set(names)
        let indexes = target.uniqueKeys.filter { index in
            let columns = Set(index.columns.map { $0.lowercased() })
            return index.condition == nil && !index.hasExpression && columns == wanted
        }
        // The table's own index has the collations of the columns, as a target's key must.
        let index = indexes.first { $0.index.hasPrefix("sqlite_autoindex") } ?? indexes.first
        let identity = Set(target.identityColumns.map { $0.name.lowercased() })
        let isIntegerKey = names.count == 1 && names[0] == target.integerKey?.lowercased()
        guard index != nil || identity == wanted || isIntegerKey else { return nil }
        self.entity = entity
        self.target = target
        self.columns = columns
        targetSlots = slots
        targetColumns = key.targetColumns
        targetAffinities = key.targetColumns.map { column($0, target)?.affinity ?? .integer }
        collations = names.map { name in
            guard let index, let place = index.columns.firstIndex(where: { $0.lowercased() == name }) else {
                return "BINARY"
            }
            return index.collations[place]
        }
    }

    package var slots: [Int] { columns.map(\.slot) }

    /// The column that is null while the target is missing: the last one that may be. Nil if none may.
    package var yielding: EntityColumn? {
        columns.last(where: entity.mayWait)
    }

    /// The detail text of a row that waits for such a target.
    package var detail: String {
        let names = columns.map(\.name)
        return "\(entity.name).\(names.count == 1 ? names[0] : "(\(names.joined(separator: ", ")))")"
            + " refers to a row of \(target.name)"
    }

    /// A query that finds a target by the values in the key. SQLite compares with the target's affinity and collation.
    package var findTarget: String { "SELECT 1 FROM \(target.name.quotedName) WHERE \(isTarget)" }

    /// The condition that is true of such a target.
    package var isTarget: String {
        targetColumns.enumerated().map { "\($1.quotedName) = ?\($0 + 1)" }.joined(separator: " AND ")
    }

    /// The condition that is true of rows that refer to a target with these values.
    package var isReferring: String {
        zip(columns, collations).enumerated().map {
            "\($1.0.name.quotedName) = ?\($0 + 1) COLLATE \($1.1.quotedName)"
        }.joined(separator: " AND ")
    }

    /// The condition that is true of rows whose target is missing. SQLite compares with the target's affinity and
    /// collation.
    package var isDangling: String {
        let own = columns.map { "\(entity.name.quotedName).\($0.name.quotedName)" }
        let match = zip(targetColumns, own).map { "_martlet_target.\($0.quotedName) = +\($1)" }
        return own.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
            + " AND NOT EXISTS (SELECT 1 FROM \(target.name.quotedName) AS _martlet_target WHERE "
            + match.joined(separator: " AND ") + ")"
    }

    /// Returns the values that a row of the target has in the key.
    package func targetValues(_ values: [Int: Value], _ row: Int64?) -> [Value] {
        targetSlots.map { slot in slot.map { values[$0] ?? .null } ?? row.map { .integer($0) } ?? .null }
    }

    /// Returns the wait key of rows that lack a target with these values.
    ///
    /// Values that a collation or an affinity may treat as equal have the same wait key. If they are different after
    /// all, a row is retried in vain.
    package func wait(for values: [Value]) -> [UInt8] {
        // Must not look like a ``WaitKey/target(_:_:)``, which begins with a number.
        Array("k\(target.id)/\(targetColumns.joined(separator: "\0").lowercased()):".utf8)
            + StableID(values: values.map(\.folded)).bytes
    }

    /// Returns true if both foreign keys refer to the same columns.
    package func refersToSameColumns(as other: ValueKey) -> Bool {
        target.id == other.target.id && targetSlots == other.targetSlots
    }

    /// Returns whether a row with these values refers to itself, since they equal its own values in the key.
    package func refersToItself(_ values: [Value], having own: [Value]) -> Bool {
        !own.contains(.null) && mayTake(values, for: own)
    }

    /// Returns whether a row with these values refers to one with those values in the key, once both are in their
    /// tables. Unlike ``wait(for:)``, this compares as SQLite does: it tells 2 from '2' unless a column converts one of
    /// them, and 'a' from 'A' unless the key ignores case.
    package func mayTake(_ values: [Value], for target: [Value]) -> Bool {
        guard wait(for: values) == wait(for: target) else { return false }
        return columns.indices.allSatisfy { index in
            let affinity = targetAffinities[index]
            // A foreign key's value is compared as the target's column would store it.
            let value = affinity.converted(columns[index].affinity.converted(values[index]))
            return value.mayEqual(affinity.converted(target[index]), collation: collations[index])
        }
    }
}

extension Entity {
    /// Returns true if the column can be null until its target comes: it may be null, and is not part of the identity.
    package func mayWait(_ column: EntityColumn) -> Bool {
        !column.isNotNull && !identityColumns.contains { $0.slot == column.slot }
    }
}

/// The foreign keys of tracked tables that are checked by value, by the tables at both ends.
package struct ValueKeys {
    package private(set) var byEntity: [Int64: [ValueKey]] = [:]
    package private(set) var byTarget: [Int64: [ValueKey]] = [:]

    package init(_ catalog: Catalog) {
        for entity in catalog.entities {
            for key in entity.foreignKeys.compactMap({ ValueKey($0, of: entity, in: catalog) }) {
                byEntity[entity.id, default: []].append(key)
                byTarget[key.target.id, default: []].append(key)
            }
        }
    }

    /// Returns those of a row's values, by slot, that others may refer to.
    package func referred(_ values: [Int: Value], of entity: Entity) -> [Int: Value] {
        guard let keys = byTarget[entity.id] else { return [:] }
        return values.filter { slot, _ in keys.contains { $0.targetSlots.contains(slot) } }
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

    /// Returns whether SQLite may treat two stored values as equal.
    fileprivate func mayEqual(_ other: Value, collation: String) -> Bool {
        if let a = textBytes, let b = other.textBytes {
            return switch collation.uppercased() {
            case "BINARY": a == b
            case "RTRIM": a.withoutTrailingSpaces == b.withoutTrailingSpaces
            case "NOCASE": a.map(\.lowercasedASCII) == b.map(\.lowercasedASCII)
            // Only SQLite knows what a program's own collation treats as equal.
            default: true
            }
        }
        return switch (self, other) {
        case (.integer(let whole), .real(let number)), (.real(let number), .integer(let whole)):
            Int64(exactly: number) == whole
        // 0.0 equals -0.0 here.
        case (.real(let a), .real(let b)): a == b
        default: self == other
        }
    }

    /// One value for all that SQLite's built-in collations and affinities may treat as equal.
    fileprivate var folded: Value {
        switch self {
        case .integer(let number): .real(Double(number))
        case .text(let text): Self.folded(Array(text.utf8))
        case .rawText(let bytes): Self.folded(bytes)
        // Makes 0.0 of -0.0.
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
