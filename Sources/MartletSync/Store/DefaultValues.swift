import GRDB
import MartletStore

/// What columns of a table hold that no insert brings.
enum DefaultValues {
    /// The defaults that are the same whenever a row is inserted, by column name.
    static func read(_ db: Database, _ entity: Entity) throws -> [String: Value] {
        var values: [String: Value] = [:]
        for column in try TableInspector(db).table(entity.name)?.columns ?? [] {
            guard let sql = column.defaultSQL, !sql.uppercased().hasPrefix("CURRENT_"), !sql.hasPrefix("("),
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
}
