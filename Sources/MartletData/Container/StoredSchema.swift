import GRDB
import MartletStore

/// The schema that a store was last created for or migrated to, as recorded in the store.
struct StoredSchema: Codable, Equatable {
    struct Column: Codable, Equatable {
        var type: String
        var isNotNull: Bool
        /// The table that the column references.
        var reference: String?
        var owner: String
        var property: String
        var valueType: String
    }

    struct Table: Codable, Equatable {
        var name: String
        var columns: [String: Column]
        /// The SQL of unique keys and indexes, by name.
        var indexes: [String: String]
        var identity: [String]
        var hasType: Bool
        /// The models whose rows the table contains.
        var entities: [String]
        /// Columns of earlier versions that still exist.
        var retired: [String: Column] = [:]
    }

    struct Join: Codable, Equatable {
        var name: String
        var own: String
        var ownTable: String
        var other: String
        var otherTable: String
    }

    /// Where a relationship's pairs are stored.
    enum Place: Codable, Hashable {
        /// In a column of the owner's table.
        case column(table: String, name: String)
        /// In a column of the other model's table.
        case inverse(table: String, name: String)
        case join(table: String, own: String, other: String)
    }

    struct Relationship: Codable, Equatable {
        var owner: String
        var property: String
        var isToMany: Bool
        var table: String
        var destination: String
        var place: Place
    }

    /// The format of this record, which a later version may need to know.
    var format = 1
    var version: Schema.Version
    var tables: [Table]
    var joins: [Join]
    var relationships: [Relationship]
    /// Tables for models of earlier versions that still exist.
    var leftOut: [Table] = []
    var leftOutJoins: [Join] = []

    init(_ schema: Schema, _ layout: SchemaLayout) {
        version = schema.version
        let maker = TableMaker(layout: layout)
        tables = layout.tables.map { table in
            Table(
                name: table.name,
                columns: Dictionary(
                    table.columns.map { ($0.name, Column($0)) }, uniquingKeysWith: { first, _ in first }),
                indexes: Dictionary(
                    maker.indexes(table).map { ($0.name, $0.sql) }, uniquingKeysWith: { first, _ in first }),
                identity: table.identity, hasType: table.hasTypeColumn,
                entities: layout.entities.filter { $0.table === table }.map(\.name).sorted())
        }.sorted { $0.name < $1.name }
        joins = layout.joins.compactMap { name, first, _ in
            guard case .join(_, let own, let other) = first.storage else { return nil }
            return Join(
                name: name, own: own, ownTable: first.source.table.name, other: other,
                otherTable: first.destination.table.name)
        }.sorted { $0.name < $1.name }
        relationships = layout.entities.flatMap { entity in
            entity.slots.compactMap { slot in
                guard let link = slot.link, link.source === entity, slot.keyPath != nil,
                    let place = Self.place(of: link)
                else { return nil }
                return Relationship(
                    owner: entity.name, property: link.name, isToMany: link.isToMany, table: entity.table.name,
                    destination: link.destination.table.name, place: place)
            }
        }.sorted { ($0.owner, $0.property) < ($1.owner, $1.property) }
    }

    private static func place(of link: Link) -> Place? {
        switch link.storage {
        case .column:
            link.source.column(of: link).map { .column(table: link.source.table.name, name: $0) }
        case .inverse:
            link.inverse.flatMap { inverse in
                link.destination.column(of: inverse).map {
                    .inverse(table: link.destination.table.name, name: $0)
                }
            }
        case .join(let table, let own, let other): .join(table: table, own: own, other: other)
        case .list: nil
        }
    }

    /// Every model whose rows are or were in the store.
    var entities: Set<String> { Set((tables + leftOut).flatMap(\.entities)) }

    func isSame(as other: StoredSchema) -> Bool {
        var other = other
        for index in other.tables.indices { other.tables[index].retired = [:] }
        return version == other.version && tables == other.tables && joins == other.joins
            && relationships == other.relationships
    }

    /// Returns true if models of this schema can be read from and written to the tables of the other one.
    func hasTables(of other: StoredSchema) -> Bool { differences(from: other).isEmpty }

    /// The names of tables and columns that differ.
    func differences(from other: StoredSchema) -> [String] {
        var found: [String] = []
        for name in Set(tables.map(\.name) + other.tables.map(\.name)).sorted() {
            guard let a = tables.first(where: { $0.name == name }),
                let b = other.tables.first(where: { $0.name == name })
            else {
                found.append(name)
                continue
            }
            let columns = Set(a.columns.keys).union(b.columns.keys).filter { a.columns[$0] != b.columns[$0] }
            found += columns.sorted().map { "\(name).\($0)" }
            if a.indexes != b.indexes || a.hasType != b.hasType || a.identity != b.identity { found.append(name) }
        }
        let joined = Set(joins.map(\.name)).symmetricDifference(other.joins.map(\.name))
        return found + joined.sorted()
    }

    private static let tableName = "_martlet_models"

    /// The recorded schema, or nil if no container has used the store yet.
    static func read(_ db: Database) throws -> StoredSchema? {
        guard let text = try text(db) else { return nil }
        do {
            return try JSONDecoder().decode(StoredSchema.self, from: text)
        } catch {
            throw SwiftDataError.incompatibleStore.because("The store's record of its schema can't be read.")
        }
    }

    /// The version alone, which any later format records in the same way.
    static func readVersion(_ db: Database) throws -> Schema.Version? {
        struct Versioned: Decodable { var version: Schema.Version }
        return try text(db).flatMap { try? JSONDecoder().decode(Versioned.self, from: $0).version }
    }

    private static func text(_ db: Database) throws -> Data? {
        guard try db.hasTable(tableName) else { return nil }
        return try String.fetchOne(db, sql: "SELECT schema FROM \(tableName)").map { Data($0.utf8) }
    }

    /// Records this schema in the store.
    func write(_ db: Database) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let text = String(decoding: try encoder.encode(self), as: UTF8.self)
        try db.execute(
            sql: "CREATE TABLE IF NOT EXISTS \(Self.tableName)(id INTEGER PRIMARY KEY, schema TEXT NOT NULL)")
        try db.execute(sql: "INSERT OR REPLACE INTO \(Self.tableName) VALUES (1, ?)", arguments: [text])
    }
}

extension StoredSchema.Column {
    init(_ column: TableLayout.Column) {
        self.init(
            type: column.declaration, isNotNull: column.isNotNull, reference: column.reference, owner: column.owner,
            property: column.property, valueType: column.valueType)
    }
}
