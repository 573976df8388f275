import Foundation
import GRDB
import MartletStore

/// Reads the tables to simulate from a user's file: a SQL script, as printed by `sqlite3 FILE .schema`, or an SQLite
/// file.
public enum SchemaFile {
    /// Returns the script that creates the tables of a file.
    ///
    /// - Returns: SQL for ``SimulationOptions/schema``. For an SQLite file: its tables, indexes, views and triggers,
    ///   without its rows and without Martlet's own objects.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the file can't be read.
    public static func script(at path: String) throws -> String {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw StoreError(.invalidArgument, "The schema \(path) can't be read.", hint: "Check the path.")
        }
        defer { try? file.close() }
        let magic = Array("SQLite format 3\0".utf8)
        if try file.read(upToCount: magic.count).map({ Array($0) }) == magic { return try database(path) }
        try file.seek(toOffset: 0)
        guard let text = String(bytes: try file.readToEnd() ?? Data(), encoding: .utf8) else {
            throw StoreError(
                .invalidArgument, "The schema \(path) is neither an SQLite file nor UTF-8 text.",
                hint: "Pass the SQLite file, or what `sqlite3 FILE .schema` prints.")
        }
        return script(of: text)
    }

    /// Removes the tables that SQLite creates by itself: `.schema` prints SQLite's own tables, which nobody may create,
    /// and those of virtual tables, which exist once the virtual table does.
    public static func script(of text: String) -> String {
        let parts = parts(of: text).map { (text: $0, table: table(madeBy: $0)) }
        let virtual = parts.compactMap { $0.table?.isVirtual == true ? $0.table?.name.lowercased() : nil }
        return parts.filter { part in
            guard let table = part.table, !table.isVirtual else { return true }
            return !isMadeBySQLite(table.name.lowercased(), virtual)
        }.map(\.text).joined()
    }

    private static func isMadeBySQLite(_ name: String, _ virtual: [String]) -> Bool {
        name.hasPrefix("sqlite_") || virtual.contains { table in shadows.contains { name == "\(table)_\($0)" } }
    }

    /// The suffixes of the tables in which FTS3 to FTS5, R-Tree and Geopoly store their contents.
    private static let shadows = [
        "content", "segments", "segdir", "docsize", "stat", "data", "idx", "config", "node", "rowid", "parent",
    ]

    /// The texts up to each semicolon, including it, and the rest. Semicolons in the body of a trigger count too.
    private static func parts(of text: String) -> [String] {
        var parts: [String] = []
        var start = text.startIndex
        for token in SchemaText.tokens(of: text) where token == ";" {
            parts.append(String(text[start..<token.endIndex]))
            start = token.endIndex
        }
        parts.append(String(text[start...]))
        return parts
    }

    /// The table that a statement creates. Nil if it creates none.
    private static func table(madeBy statement: String) -> (name: String, isVirtual: Bool)? {
        let head =
            #/
            (?:\s|--[^\n]*\n|\/\*(?s:.*?)\*\/)*CREATE\s+(VIRTUAL\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?
            ("[^"]+"|'[^']+'|`[^`]+`|\[[^\]]+\]|\w+)
            /#
            .ignoresCase()
        guard let found = statement.prefixMatch(of: head)?.output else { return nil }
        let isQuoted = found.2.first.map { "\"'`[".contains($0) } ?? false
        return (String(isQuoted ? found.2.dropFirst().dropLast() : found.2), found.1 != nil)
    }

    private static func database(_ path: String) throws -> String {
        var configuration = Configuration()
        configuration.readonly = true
        do {
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? queue.close() }
            // Tables before what depends on them; virtual tables before their own, whatever order VACUUM produced.
            let statements = try queue.read { db in
                try String.fetchAll(
                    db,
                    sql: #"""
                        SELECT sql FROM sqlite_schema
                        WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
                          AND name NOT LIKE '\_martlet\_%' ESCAPE '\' AND tbl_name NOT LIKE '\_martlet\_%' ESCAPE '\'
                        ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END, rowid
                        """#)
            }
            return script(of: statements.map { $0 + ";\n" }.joined())
        } catch let error as DatabaseError {
            throw StoreError(
                .invalidArgument, "The schema \(path) can't be read: \(error.message ?? "\(error.resultCode)").",
                hint: "Pass an intact SQLite file that no program has locked, or what `sqlite3 FILE .schema` prints.")
        }
    }
}
