import GRDB
import MartletStore

/// Checks data that the user's triggers derive: full-text indexes, R-Trees and counters must match their content.
extension Simulation {
    func checkDerived(_ node: SimulatedNode, _ open: SimulatedNode.Open) throws {
        guard schema.isGenerated else { return }
        // Querying a full-text index for its integrity is an insert.
        try open.other.inTransaction { db in
            let tables = try Row.fetchAll(db, sql: "SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
            for table in tables {
                let (name, sql): (String, String) = (table["name"], (table["sql"] as String).lowercased())
                let isVirtual = sql.hasPrefix("create virtual")
                // Shrinking may leave out one of the triggers that maintain it.
                guard try hasAllTriggers(db, name, isVirtual ? "idu" : "id") else { continue }
                do {
                    if isVirtual, sql.contains("fts5") {
                        try db.execute(
                            sql: "INSERT INTO \(name.quotedName)(\(name.quotedName)) VALUES ('integrity-check')")
                    } else if isVirtual, sql.contains("rtree") {
                        let found = try String.fetchOne(db, sql: "SELECT rtreecheck(?)", arguments: [name]) ?? "?"
                        guard found == "ok" else { throw SimulationFailure(.files, "\(node.name): \(name): \(found)") }
                        try compare(
                            node, db, name, "SELECT count(*) + total(id) FROM \(name.quotedName)",
                            "count(*) + total(rowid)")
                    } else if name.hasPrefix(SimulatedSchema.keptPrefix) {
                        try compare(node, db, name, "SELECT n FROM \(name.quotedName)", "count(*)")
                    }
                } catch let error as DatabaseError {
                    throw SimulationFailure(.files, "\(node.name): \(name): \(error.message ?? "?")")
                }
            }
            return .rollback
        }
    }

    private func hasAllTriggers(_ db: Database, _ name: String, _ events: String) throws -> Bool {
        try events.allSatisfy { event in
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = ?)",
                arguments: ["\(name)\(event)"]) ?? false
        }
    }

    /// Compares derived data with its source.
    private func compare(_ node: SimulatedNode, _ db: Database, _ name: String, _ kept: String, _ content: String)
        throws
    {
        guard
            let source = try String.fetchOne(
                db, sql: "SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name = ? || 'i'",
                arguments: [name])
        else { return }
        let found = try Double.fetchOne(db, sql: kept)
        let wanted = try Double.fetchOne(db, sql: "SELECT \(content) FROM \(source.quotedName)")
        guard found == wanted else {
            throw SimulationFailure(.files, "\(node.name): \(name) is not what is in \(source)")
        }
    }
}
