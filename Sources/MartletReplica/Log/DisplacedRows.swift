import GRDB
import MartletStore

/// The notes that other programs' statements make of rows that they might displace (`REPLACE`).
enum DisplacedRows {
    /// Drops the notes: the statements are over. For this connection's own writes, the engine writes the log and
    /// removes no notes.
    static func dropNotes(_ db: Database, _ statement: StatementCache) throws {
        // With a condition: without one, SQLite writes a page even if there is nothing to delete.
        try statement(db, "DELETE FROM \(InternalName.replaced) WHERE e <> 0").run()
    }
}
