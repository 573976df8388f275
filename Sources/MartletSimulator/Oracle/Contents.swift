import GRDB
import MartletStore

/// Reads the contents of a store's tables in a form that is the same on every node.
struct Contents {
    private let db: Database
    let entities: [Entity]

    init(_ db: Database) throws {
        self.db = db
        entities = try Catalog.load(db).entities
    }

    func rows() throws -> Rows {
        var rows: Rows = [:]
        for entity in entities {
            let names = ([entity.integerKey] + entity.columns.map(\.name)).map { $0?.quotedName ?? "NULL" }
            let read = try PreparedStatement(
                db, "SELECT \(names.joined(separator: ", ")) FROM \(entity.name.quotedName)")
            var found: [StableID: [String: Value]] = [:]
            while try read.step() {
                var values: [String: Value] = [:]
                for (index, column) in entity.columns.enumerated() {
                    let value = try portable(read.value(Int32(index + 1)), column)
                    if !value.isNull { values[column.name] = value }
                }
                guard let identity = try identity(of: entity, row: read.optionalInteger(0), values) else { continue }
                found[identity] = values
            }
            rows[entity.name] = found
        }
        return rows
    }

    /// Nil for a row without identity, which no other node has.
    private func identity(of entity: Entity, row: Int64?, _ values: [String: Value]) throws -> StableID? {
        if entity.recordsNames, let row { return try recorded(entity, row) ?? StableID(values: [.integer(row)]) }
        let named = entity.identityColumns.map { values[$0.name] ?? .null }
        return named.contains(.null) ? nil : StableID(values: named)
    }

    private func portable(_ value: Value, _ column: EntityColumn) throws -> Value {
        guard let name = column.reference, let row = column.referredRow(value),
            let target = entities.first(where: { $0.name == name }), let identity = try self.name(target, row)
        else { return value }
        return .reference(Reference(entity: name, identity: identity))
    }

    /// The stable ID of the row with this integer key.
    private func name(_ entity: Entity, _ row: Int64) throws -> StableID? {
        if entity.recordsNames { return try recorded(entity, row) }
        guard let key = entity.integerKey else { return nil }
        let columns = entity.identityColumns
        let read = try PreparedStatement(
            db,
            """
            SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(entity.name.quotedName)
            WHERE \(key.quotedName) = ?1
            """)
        read.bind(1, row)
        guard let values = try read.first({ found in columns.indices.map { found.value(Int32($0)) } }) else {
            // A row that has not arrived yet may have a recorded stable ID.
            return try recorded(entity, row)
        }
        return StableID(values: try zip(values, columns).map { try portable($0, $1) })
    }

    private func recorded(_ entity: Entity, _ row: Int64) throws -> StableID? {
        let read = try PreparedStatement(db, "SELECT ident FROM \(InternalName.side(entity.id)) WHERE row = ?1")
        read.bind(1, row)
        return try read.first { $0.optionalBlob(0).map(StableID.init(bytes:)) } ?? nil
    }

    /// The values of columns that were never set, if they are always the same.
    func defaults() throws -> [String: [String: Value]] {
        var defaults: [String: [String: Value]] = [:]
        for entity in entities {
            for column in try TableInspector(db).table(entity.name)?.columns ?? [] {
                guard let sql = column.defaultSQL, !sql.uppercased().hasPrefix("CURRENT_") else { continue }
                let value = try PreparedStatement(db, "SELECT \(sql)").first { $0.value(0) }
                defaults[entity.name, default: [:]][column.name] = value.map { Self.stored($0, column.type) }
            }
        }
        return defaults
    }

    /// The number in the form in which a column of this type stores it.
    private static func stored(_ value: Value, _ type: String) -> Value {
        let type = type.uppercased()
        guard case .integer(let number) = value else { return value }
        return ["REAL", "FLOA", "DOUB"].contains(where: type.contains) && !type.contains("INT")
            ? .real(Double(number)) : value
    }
}
