import Foundation
import GRDB

/// Facts for `martlet doctor` about data that user triggers derive from tracked tables.
package struct DerivedFacts: Sendable {
    /// Triggers that deserve a warning.
    package var triggers: [UserTrigger] = []
    /// Columns that look like references, but aren't declared as such.
    package var undeclared: [UndeclaredReference] = []
    /// Parts of the schema that read row numbers, which differ from node to node.
    package var numbered: [NumberedRule] = []
    /// Triggers that failed on remote changes since the agent was started.
    package var failures: [DerivedFailure] = []
    package var indexes: [DerivedIndex] = []
    /// Why ``indexes`` were not examined. Nil if they were.
    package var unexamined: String?
}

/// A full-text index or an R-Tree.
package struct DerivedIndex: Sendable, Equatable {
    package var name: String
    /// What is wrong with the index, as the end of a sentence. Nil if nothing is.
    package var problem: String?
    /// The statement that rebuilds the index. Nil if SQLite has none.
    package var rebuild: String?
}

extension Store {
    /// Returns the user triggers whose effects differ between nodes, or may be unexpected.
    package func noteworthyTriggers() throws -> [UserTrigger] {
        guard path != ":memory:" else { return [] }
        return try withReader { db in
            _ = try DerivedWrites(db)
            let tracked = try Catalog.load(db).entities.map(\.name)
            return UserTrigger.noteworthy(try TriggerExaminer.examine(db, tracked: tracked), tracked: tracked)
        }
    }

    /// Examines triggers, and checks each full-text and R-Tree index on a temporary copy of the file. SQLite checks a
    /// full-text index with a statement that writes, and other writers would have to wait for it.
    package func examineDerived() throws -> DerivedFacts {
        var facts = DerivedFacts()
        facts.triggers = try noteworthyTriggers()
        facts.undeclared = try undeclaredReferences()
        facts.numbered = try numberedRules()
        facts.failures = try read { try DerivedFailure.all($0) }
        let indexes = try read(VirtualIndex.all)
        guard !indexes.isEmpty else { return facts }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("martlet-\(UUID().uuidString)")
        do {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            facts.unexamined = "no temporary copy of the store could be made: \(error.localizedDescription)"
            return facts
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        let needed = try read { db in
            try Int64.fetchOne(db, sql: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size") ?? 0
        }
        let free = try? FileManager.default.attributesOfFileSystem(forPath: folder.path)[.systemFreeSize] as? Int64
        guard needed < free ?? .max else {
            facts.unexamined =
                "a copy of the store needs \(needed >> 20) MiB in \(folder.deletingLastPathComponent().path)"
            return facts
        }
        facts.indexes = try mapErrors {
            let copy = try DatabaseQueue(path: folder.appendingPathComponent("copy.sqlite").path)
            defer { try? copy.close() }
            let reader = try Connection.open(path: path, configuration: configuration, role: .reader)
            defer { try? reader.close() }
            try reader.backup(to: copy)
            return try copy.writeWithoutTransaction { db in try indexes.map { try $0.examine(db) } }
        }
        return facts
    }

    /// Runs `body` on a separate connection, in one read transaction.
    private func withReader<T>(_ body: (Database) throws -> T) throws -> T {
        try mapErrors {
            let reader = try Connection.open(path: path, configuration: configuration, role: .reader)
            let result = Result { try reader.readTransaction(body) }
            try reader.close()
            return try result.get()
        }
    }
}

/// A virtual table that serves as a full-text index or an R-Tree.
private struct VirtualIndex {
    var name: String
    /// `fts5`, `fts4`, `fts3` or `rtree`.
    var module: String
    /// Whether the index stores no text, so that it can't be rebuilt.
    var isContentless: Bool

    static func all(_ db: Database) throws -> [VirtualIndex] {
        try Row.fetchAll(
            db, sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0 ORDER BY name"
        ).compactMap { row in
            let sql: String = row["sql"]
            let tokens = SQLReader(sql).tokens
            guard let using = tokens.firstIndex(where: { $0.isWord("USING") }), using + 1 < tokens.count,
                let module = tokens[using + 1].name?.lowercased(),
                ["fts5", "fts4", "fts3", "rtree", "rtree_i32"].contains(module)
            else { return nil }
            let text = sql.filter { !$0.isWhitespace }.lowercased()
            return VirtualIndex(
                name: row["name"], module: module,
                isContentless: text.contains("content=''") || text.contains("content=\"\""))
        }
    }

    func examine(_ db: Database) throws -> DerivedIndex {
        let table = name.quotedName
        var index = DerivedIndex(name: name)
        if module.hasPrefix("fts"), !isContentless {
            index.rebuild = "INSERT INTO \(table)(\(table)) VALUES('rebuild')"
        }
        do {
            switch module {
            case "fts5":
                // Also compares the index with its content, wherever that is stored.
                try db.execute(sql: "INSERT INTO \(table)(\(table), rank) VALUES('integrity-check', 1)")
            case "fts4", "fts3": try db.execute(sql: "INSERT INTO \(table)(\(table)) VALUES('integrity-check')")
            default:
                let found = try String.fetchOne(db, sql: "SELECT rtreecheck('main', ?)", arguments: [name]) ?? "ok"
                if found != "ok" { index.problem = "is damaged: \(found)" }
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            index.problem = isContentless ? "is damaged" : "does not match its content"
        } catch let error as DatabaseError {
            index.problem = "can't be examined: \(error.message ?? "\(error)")"
            index.rebuild = nil
        }
        return index
    }
}
