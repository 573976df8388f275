import GRDB
import MartletStore

/// What columns of a table hold that no insert brings.
enum DefaultValues {
    /// The defaults that are the same whenever a row is inserted, by column name.
    static func read(_ db: Database, _ entity: Entity) throws -> [String: Value] {
        let columns = try TableInspector(db).table(entity.name)?.columns ?? []
        let defaults = columns.compactMap { column -> (name: String, definition: String)? in
            guard let sql = column.defaultSQL, column.isDefaultConstant,
                entity.columns.contains(where: { $0.name == column.name })
            else { return nil }
            let type = Affinity(declaredType: column.type) == .blob ? "BLOB" : column.type.quotedName
            return (column.name, "\(column.name.quotedName) \(type) DEFAULT (\(sql))")
        }
        guard !defaults.isEmpty else { return [:] }
        // As such columns keep them: SQLite itself says how.
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

    /// SQL that makes the default of a time, in seconds since 1970 (`?1`), by the slots of columns whose default is the
    /// time of the insert.
    static func times(_ db: Database, _ entity: Entity) throws -> [Int: String] {
        var times: [Int: String] = [:]
        for column in try TableInspector(db).table(entity.name)?.columns ?? [] {
            guard let function = column.defaultTime, let own = entity.columns.first(where: { $0.name == column.name })
            else { continue }
            times[own.slot] = "SELECT \(function)(?1, 'unixepoch')"
        }
        return times
    }
}
