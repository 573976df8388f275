import GRDB
import MartletStore

/// What columns of a table hold that no insert brings.
enum DefaultValues {
    /// The defaults that are the same whenever a row is inserted, by column name.
    static func read(_ db: Database, _ entity: Entity) throws -> [String: Value] {
        var values: [String: Value] = [:]
        for column in try TableInspector(db).table(entity.name)?.columns ?? [] {
            guard let sql = column.defaultSQL, column.isDefaultConstant,
                entity.columns.contains(where: { $0.name == column.name })
            else { continue }
            // As the table would keep it.
            let type = column.type.uppercased()
            let affinity =
                ["REAL", "FLOA", "DOUB"].contains(where: type.contains)
                ? "REAL" : ["CHAR", "CLOB", "TEXT"].contains(where: type.contains) ? "TEXT" : nil
            values[column.name] = try PreparedStatement(
                db, "SELECT \(affinity.map { "CAST(\(sql) AS \($0))" } ?? sql)"
            ).first { $0.value(0) }
        }
        return values
    }

    /// SQL that makes the default of a time, in seconds since 1970 (`?1`), by the slots of columns whose default is the time of the insert.
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
