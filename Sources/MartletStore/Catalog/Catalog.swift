import Foundation
package import GRDB

/// The tracked tables of a store, as of the moment of reading.
package struct Catalog: Sendable {
    package private(set) var entities: [Entity]
    private let byID: [Int64: Int]
    private let byName: [String: Int]
    private let byFoldedName: [String: Int]

    private init(_ entities: [Entity]) {
        self.entities = entities
        byID = Dictionary(uniqueKeysWithValues: entities.enumerated().map { ($1.id, $0) })
        var byName: [String: Int] = [:]
        for (index, entity) in entities.enumerated() {
            for former in entity.formerNames { byName[former] = index }
        }
        for (index, entity) in entities.enumerated() { byName[entity.name] = index }
        self.byName = byName
        // SQLite ignores case in names. Exact matches take precedence.
        byFoldedName = Dictionary(
            entities.enumerated().map { ($1.name.lowercased(), $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns the catalog with these columns marked as local, by entity and slot.
    package func marking(local slots: [Int64: Set<Int>]) -> Catalog {
        guard !slots.isEmpty else { return self }
        return Catalog(
            entities.map { entity in
                guard let local = slots[entity.id] else { return entity }
                var entity = entity
                for index in entity.columns.indices where local.contains(entity.columns[index].slot) {
                    entity.columns[index] = entity.columns[index].local()
                }
                return entity
            })
    }

    package subscript(id: Int64) -> Entity? { byID[id].map { entities[$0] } }

    /// The entity with this name, or with this name before it was renamed.
    package subscript(name: String) -> Entity? {
        (byName[name] ?? byFoldedName[name.lowercased()]).map { entities[$0] }
    }

    /// Reads the records of each tracked table, and its current schema in SQLite.
    ///
    /// A catalog that any connection of this process made from the same records and the same schema is reused.
    package static func load(_ db: Database) throws -> Catalog {
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM \(InternalName.entities) WHERE state = 'tracked' ORDER BY id"))
        let source = try CatalogSource(db, entities: rows)
        if let known = CatalogSource.known(source) { return known }
        let catalog = try make(db, rows)
        CatalogSource.note(catalog, for: source)
        return catalog
    }

    private static func make(_ db: Database, _ rows: [Row]) throws -> Catalog {
        let inspector = TableInspector(db)
        var entities: [Entity] = []
        for row in rows {
            guard let table = try inspector.table(row["name"]), table.kind == "table" else { continue }
            entities.append(try entity(db, row, table))
        }
        noteReferences(&entities)
        try noteActions(db, &entities)
        return Catalog(entities)
    }

    /// Marks the tables to which a foreign key with an action refers, also one of a table that is not tracked.
    private static func noteActions(_ db: Database, _ entities: inout [Entity]) throws {
        let targets = try String.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT DISTINCT k."table" FROM main.sqlite_schema AS s
                    CROSS JOIN pragma_foreign_key_list(s.name, 'main') AS k
                    WHERE s.type = 'table' AND (k.on_update NOT IN ('NO ACTION', 'RESTRICT')
                    OR k.on_delete NOT IN ('NO ACTION', 'RESTRICT'))
                    """))
        let names = Set(targets.map { $0.lowercased() })
        for place in entities.indices {
            entities[place].causesActions = names.contains(entities[place].name.lowercased())
        }
    }

    /// Marks the columns that hold integer keys which each node assigns on its own: columns of foreign keys to such a
    /// key (alone or with other columns), and of foreign keys to columns that hold one themselves.
    private static func noteReferences(_ entities: inout [Entity]) {
        let places = Dictionary(
            entities.enumerated().map { ($1.name.lowercased(), $0) }, uniquingKeysWith: { first, _ in first })
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            for place in entities.indices {
                let entity = entities[place]
                for key in entity.foreignKeys {
                    guard let target = places[key.target.lowercased()].map({ entities[$0] }) else { continue }
                    for (name, targetName) in zip(key.columns, key.targetColumns) {
                        guard
                            let index = entity.columns.firstIndex(where: { $0.name.lowercased() == name.lowercased() }),
                            entity.columns[index].reference == nil,
                            let reference = reference(targetName, of: target),
                            // Rows keep their IDs: earlier versions used such a number unchanged.
                            entity.followsChains || !entity.identityColumns.contains(entity.columns[index])
                                || key.columns.count == 1 && reference == target.name
                        else { continue }
                        let isInIdentity = entity.identityColumns.contains(entity.columns[index])
                        entities[place].columns[index] = entity.columns[index].referring(
                            to: reference, keepsTextAsItIs: !entity.followsChains && isInIdentity)
                        hasChanged = true
                    }
                }
            }
        }
    }

    private static func reference(_ name: String, of target: Entity) -> String? {
        if target.localKey?.lowercased() == name.lowercased() { return target.name }
        return target.columns.first { $0.name.lowercased() == name.lowercased() }?.reference
    }

    /// Returns the names of dropped columns, in lower case, unless another column now has the name.
    private static func goneColumns(_ db: Database, _ id: Int64, _ columns: [EntityColumn]) throws -> Set<String> {
        let dropped = try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT name, former FROM \(InternalName.columns) WHERE entity = ? AND dropped IS NOT NULL"),
            arguments: [id])
        guard !dropped.isEmpty else { return [] }
        let gone = try dropped.flatMap { try [$0["name"]] + names($0["former"]) }
        let known = columns.flatMap { [$0.name] + $0.formerNames }
        return Set(gone.map { $0.lowercased() }).subtracting(known.map { $0.lowercased() })
    }

    private static func entity(_ db: Database, _ row: Row, _ table: TableInspector.Table) throws -> Entity {
        let id: Int64 = row["id"]
        let identity = try decode(IdentityRule.self, row["identity"])
        let recorded = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT * FROM \(InternalName.columns)
                    WHERE entity = ? AND dropped IS NULL ORDER BY slot
                    """),
            arguments: [id])
        // Absent in a store of an earlier format, which can still be read.
        let formerRules = try (row["former_rules"] as String?).map { try decode([FormerRule].self, $0) } ?? []
        var columns: [EntityColumn] = []
        for column in table.columns where !column.isGenerated {
            guard let record = recorded.first(where: { $0["name"] == column.name }) else { continue }
            columns.append(
                EntityColumn(
                    name: column.name, formerNames: try names(record["former"]), slot: record["slot"],
                    declaredType: column.type, isStrict: table.isStrict, isNotNull: column.isNotNull,
                    nullReplacement: column.isNotNull ? column.predictableDefaultSQL : nil, since: record["since"],
                    // Absent in a store of an earlier format, which can still be read.
                    wasReference: record["referred"] as Bool? ?? false))
        }
        let identityNames: [String] = if case .columns(let names) = identity { names } else { [] }
        let identitySet = Set(identityNames)
        var entity = Entity(
            id: id, name: table.name, formerNames: try names(row["former"]), columns: columns,
            identity: identity, integerKey: table.integerKey, isWithoutRowID: table.isWithoutRowID,
            uniqueKeys: [], foreignKeys: table.foreignKeys, keepsOldValues: row["old_values"],
            uniquePolicy: UniquePolicy(rawValue: row["unique_policy"]) ?? .keepNewest,
            keepsNames: row["names"] as Bool? ?? false, followsChains: row["chains"] as Bool? ?? false,
            formerRules: formerRules)
        if !formerRules.isEmpty {
            let needed = Set(formerRules.flatMap { $0.slots ?? [] })
            entity.droppedColumns = try Row.fetchAll(
                db,
                sql: "SELECT slot, name, since FROM \(InternalName.columns) WHERE entity = ? AND dropped IS NOT NULL",
                arguments: [id]
            ).filter { needed.contains($0["slot"]) }.map {
                EntityColumn(
                    name: $0["name"], formerNames: [], slot: $0["slot"], declaredType: "", isNotNull: false,
                    since: $0["since"], isDropped: true)
            }
        }
        entity.goneColumns = try goneColumns(db, id, columns)
        entity.uniqueKeys = table.uniqueKeys.filter {
            $0.hasExpression || Set($0.columns) != identitySet || table.integerKey != nil
                || $0.joinsDifferentValues(entity)
        }
        entity.registers = registers(entity, table)
        entity.isAutoincrement = table.isAutoincrement
        entity.hasUniqueIdentity = identityNames.isEmpty || table.isUnique(identityNames)
        return entity
    }

    /// Returns the groups of columns that form one register. Groups with a common column are merged.
    private static func registers(_ entity: Entity, _ table: TableInspector.Table) -> [Set<Int>] {
        let slots = Dictionary(
            entity.columns.filter { !entity.identityColumns.contains($0) }.map { ($0.name.lowercased(), $0.slot) },
            uniquingKeysWith: { first, _ in first })
        let keys = table.foreignKeys.filter { $0.columns.count > 1 }.map { Set($0.columns.map { $0.lowercased() }) }
        var registers: [Set<Int>] = []
        for names in table.checks + keys {
            var register = Set(names.compactMap { slots[$0] })
            guard register.count > 1 else { continue }
            registers.removeAll { other in
                guard !other.isDisjoint(with: register) else { return false }
                register.formUnion(other)
                return true
            }
            registers.append(register)
        }
        return registers
    }

    /// Decodes a list of names. The list is nearly always empty, and a catalog is read often, so that case skips the
    /// decoder.
    private static func names(_ json: String) throws -> [String] {
        json == "[]" ? [] : try decode([String].self, json)
    }

    static func decode<T: Decodable>(_ type: T.Type, _ json: String) throws -> T {
        do {
            return try JSONDecoder().decode(type, from: Data(json.utf8))
        } catch {
            throw StoreError(
                .corrupt, "Martlet's catalog in the store can't be decoded.", hint: "Restore the file from a backup.")
        }
    }

    static func encode(_ value: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }
}
