import GRDB
import MartletStore

/// Lets stored models take values of a unique key from each other in a circle.
///
/// SQLite checks a unique index with each row that is written, not at the end. So the index is away while the rows are
/// written: each once, with its last values, and that is what the history has.
struct KeyExchange {
    let db: Database
    let maker: TableMaker
    let circles: [RekeyedModels.Circle]

    private struct Index {
        let name: String
        let sql: String
        /// Stands in for it: the triggers that capture look for rows of the same values.
        let substitute: String
        let substituteSQL: String
    }

    /// - Throws: ``SwiftDataError/modelValidationFailure`` where the key names the models on every node; what `body`
    ///   threw; SQLite's error where a value is there twice afterwards. The caller's transaction takes everything back
    ///   then.
    func run(_ body: () throws -> Void) throws {
        let indexes = try circles.compactMap(index)
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

    /// Nil where the store has no such index: somebody dropped it.
    private func index(_ circle: RekeyedModels.Circle) throws -> Index? {
        let table = circle.table
        guard Set(table.identity).isDisjoint(with: circle.key) else {
            let attributes = circle.key.joined(separator: ", ")
            throw SwiftDataError.modelValidationFailure.because(
                """
                Models of \(table.name) exchange values of \(attributes), which identify them on every node. Do it in \
                two saves: give one of them another value first.
                """
            )
        }
        let name = maker.uniqueName(table, circle.key)
        guard
            let sql = try String.fetchOne(
                db, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?", arguments: [name])
        else { return nil }
        let substitute = name + "_substitute"
        let columns = circle.key.map(\.quotedName).joined(separator: ", ")
        return Index(
            name: name, sql: sql, substitute: substitute,
            substituteSQL: "CREATE INDEX \(substitute.quotedName) ON \(table.name.quotedName)(\(columns))")
    }
}
