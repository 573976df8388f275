import GRDB
package import MartletCore
package import MartletStore

/// A condition in SQL on the columns of a row, evaluated on values that need not be in any table.
///
/// SQLite itself evaluates it, in an in-memory table of one row whose columns have the same names and types. There the
/// condition is that of a generated column, in which SQLite refuses whatever would make the result depend on more than
/// the row (other tables, `random()`, the time). Text is compared as `BINARY`, unless the condition says `COLLATE`.
///
/// Confined to the connection of the context that it belongs to.
package final class RowCondition {
    private let database: DatabaseQueue
    private let slots: [Int]
    private let defaults: [Int: Value]
    private let ask: PreparedStatement

    /// - Parameter defaults: the values of columns that a row doesn't set, by slot.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the text is no condition on the row.
    package init(_ sql: String, _ entity: Entity, defaults: [Int: Value]) throws {
        // A column that refers to a row by number has another value on each node.
        let columns = entity.columns.filter { $0.reference == nil }
        self.defaults = defaults
        slots = columns.map(\.slot)
        // The table here is not STRICT.
        let declared = columns.map { column in
            "\(column.name.quotedName) \(column.affinity == .blob ? "BLOB" : column.declaredType)"
        }
        let table = entity.name.quotedName
        do {
            let database = try DatabaseQueue()
            ask = try database.inDatabase { db in
                // One statement each: the text could contain several.
                try db.makeStatement(
                    sql: """
                        CREATE TABLE \(table)(\((["\(Self.place) INTEGER"] + declared).joined(separator: ", ")),
                        \(Self.answer) INTEGER GENERATED ALWAYS AS ((\(sql)) IS TRUE) STORED)
                        """
                ).execute()
                try db.makeStatement(sql: "INSERT INTO \(table)(\(Self.place)) VALUES (1)").execute()
                let sets = columns.enumerated().map { ", \($1.name.quotedName) = ?\($0 + 1)" }.joined()
                return try PreparedStatement(
                    db, "UPDATE \(table) SET \(Self.place) = 1\(sets) RETURNING \(Self.answer)",
                    needsTransaction: false)
            }
            self.database = database
        } catch let error as DatabaseError {
            throw Self.refused(sql, entity, columns, error.message ?? "\(error)")
        } catch let error as StoreError {
            throw Self.refused(sql, entity, columns, error.message)
        }
    }

    private static let place = "\"_martlet row\""
    private static let answer = "\"_martlet answer\""

    private static func refused(
        _ sql: String, _ entity: Entity, _ columns: [EntityColumn], _ reason: String
    ) -> StoreError {
        StoreError(
            .invalidArgument, "The filter of table \(entity.name) is invalid: \(sql): \(reason).",
            hint: """
                Use one SQL condition on the columns of a row: \(columns.map(\.name).joined(separator: ", ")). No \
                other tables, nothing random, no time, and no integer keys that each node assigns on its own.
                """)
    }

    /// - Parameter values: by slot.
    package func holds(_ values: [Int: Value]) throws -> Bool {
        try database.inDatabase { _ in
            for (index, slot) in slots.enumerated() {
                ask.bind(Int32(index + 1), values[slot] ?? defaults[slot] ?? .null)
            }
            return try ask.first { $0.integer(0) != 0 } ?? false
        }
    }
}
