package import GRDB
package import MartletCore
package import MartletStore

/// The default values of columns that an insert doesn't set.
package enum DefaultValues {
    /// Returns the defaults that are the same for every insert, by column name.
    package static func read(_ db: Database, _ entity: Entity) throws -> [String: Value] {
        guard let table = try TableInspector(db).table(entity.name) else { return [:] }
        let defaults = table.columns.compactMap { column -> (name: String, definition: String)? in
            guard let sql = column.defaultSQL, column.isDefaultConstant,
                entity.columns.contains(where: { $0.name == column.name })
            else { return nil }
            let affinity = Affinity(declaredType: column.type, isStrict: table.isStrict)
            let type = affinity == .blob ? "BLOB" : column.type.quotedName
            return (column.name, "\(column.name.quotedName) \(type) DEFAULT (\(sql))")
        }
        guard !defaults.isEmpty else { return [:] }
        // SQLite itself computes how such columns store them.
        let queue = try DatabaseQueue()
        return try queue.inDatabase { memory in
            try memory.execute(
                sql: """
                    CREATE TABLE t(\(defaults.map(\.definition).joined(separator: ", ")));
                    INSERT INTO t DEFAULT VALUES
                    """)
            let read = try PreparedStatement(memory, "SELECT * FROM t")
            let values = try read.first { row in defaults.indices.map { row.value(Int32($0)) } } ?? []
            return Dictionary(zip(defaults.map(\.name), values)) { first, _ in first }
        }
    }

    /// Returns, by the slots of columns whose default is the time of the insert, SQL that makes the default from a time
    /// in seconds since 1970 (`?1`).
    package static func times(_ db: Database, _ entity: Entity) throws -> [Int: String] {
        var times: [Int: String] = [:]
        for column in try TableInspector(db).table(entity.name)?.columns ?? [] {
            guard let function = column.defaultTime, let own = entity.columns.first(where: { $0.name == column.name })
            else { continue }
            times[own.slot] = "SELECT \(function)(?1, 'unixepoch')"
        }
        return times
    }
}
