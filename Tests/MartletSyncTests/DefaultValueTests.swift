import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite struct DefaultValueTests {
    /// The engine's value for a column's default is the value that SQLite stores in a row.
    @Test(arguments: [
        "TEXT DEFAULT 5", "TEXT DEFAULT 1.50", "TEXT DEFAULT x'41'", "VARCHAR(10) DEFAULT word", "INT DEFAULT '7'",
        "INT DEFAULT 'seven'", "INT DEFAULT 2.0", "FLOATING POINT DEFAULT 1", "DOUBLE DEFAULT 1", "REAL DEFAULT '2'",
        "NUMERIC DEFAULT '3.0'", "ANY DEFAULT '7'", "DEFAULT '1'", "BLOB DEFAULT 1", "\"odd \"\"type\" DEFAULT '4'",
        "INT DEFAULT (1 + 2)", "TEXT DEFAULT TRUE", "DATE DEFAULT '2026-01-01'", "INT DEFAULT -9223372036854775808",
    ])
    func theDefaultOfAColumnIsTheValueThatItStores(definition: String) throws {
        let lab = try Lab("CREATE TABLE item(id TEXT PRIMARY KEY NOT NULL, value \(definition))")
        let node = try lab.node("a")
        try node.write("INSERT INTO item(id) VALUES ('x')")
        let entity = try #require(try node.store.trackedEntities().first)
        let known = try node.store.database.read { try DefaultValues.read($0, entity) }
        let stored = try node.store.database.read { db in
            try PreparedStatement(db, "SELECT value FROM item").first { $0.value(0) }
        }
        #expect(known["value"] == stored)
    }
}
