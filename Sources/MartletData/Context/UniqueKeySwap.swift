import GRDB
import MartletStore

/// Lets stored models exchange values of a unique key in a cycle.
///
/// SQLite checks a unique index with each row that is written, not at the end. So the index is dropped while the rows
/// are written: each is written once, with its final values, and the history records just that.
struct UniqueKeySwap {
    let db: Database
    let maker: TableMaker
    let cycles: [RekeyedModels.Cycle]

    private struct Index {
        let name: String
        let sql: String
        /// Replaces the index meanwhile: the capture triggers look for rows with the same values.
        let substitute: String
        let substituteSQL: String
    }

    /// - Throws: ``SwiftDataError/modelValidationFailure`` if a column of the key is part of the row identity; the
    ///   errors of `body`; SQLite's error if a value occurs twice afterwards. The caller's transaction must then be
    ///   rolled back.
    func run(_ body: () throws -> Void) throws {
        let indexes = try cycles.compactMap(index)
        for index in indexes {
            try db.execute(sql: index.substituteSQL)
            try db.execute(sql: "DROP INDEX \(index.name.quotedName)")
        }
        try body()
        for index in indexes {
            try db.execute(sql: index.sql)
            try db.execute(sql: "DROP INDEX \(index.substitute.quotedName)")
        }
    }

    /// Nil if the store has no such index because somebody dropped it.
    private func index(_ cycle: RekeyedModels.Cycle) throws -> Index? {
        let table = cycle.table
        guard Set(table.identity).isDisjoint(with: cycle.key) else {
            let attributes = cycle.key.joined(separator: ", ")
            throw SwiftDataError.modelValidationFailure.because(
                """
                Models of \(table.name) exchange values of \(attributes), which identify them on every node. Do it in \
                two saves: give one of them another value first.
                """
            )
        }
        let name = maker.uniqueName(table, cycle.key)
        guard
            let sql = try String.fetchOne(
                db, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?", arguments: [name])
        else { return nil }
        let substitute = name + "_substitute"
        let columns = cycle.key.map(\.quotedName).joined(separator: ", ")
        return Index(
            name: name, sql: sql, substitute: substitute,
            substituteSQL: "CREATE INDEX \(substitute.quotedName) ON \(table.name.quotedName)(\(columns))")
    }
}
