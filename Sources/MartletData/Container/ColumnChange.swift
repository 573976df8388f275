import GRDB
import MartletStore

/// Decides whether a column can be converted to another one without losing a value, and with which SQL.
struct ColumnChange {
    private let change: TableDifference.Change
    private let table: TableLayout
    private let isCustom: Bool

    init(_ change: TableDifference.Change, of table: TableLayout, isCustom: Bool) {
        self.change = change
        self.table = table
        self.isCustom = isCustom
    }

    private var column: TableLayout.Column { change.column }
    private var attribute: String { "\(column.owner).\(column.property)" }
    private var name: String { column.name.quotedName }
    private var fill: String? {
        column.defaultValue.flatMap { $0.isNull ? nil : TableMaker.literal($0) }
    }

    /// Checks the requirements of a change that don't depend on stored values.
    ///
    /// - Throws: ``SwiftDataError/missingMigration``.
    func check() throws {
        if change.isFilled, fill == nil, !isCustom {
            throw SwiftDataError.missingMigration.because(
                """
                \(attribute) is no longer optional. Give it a default value where it is declared, or fill it in \
                willMigrate of a custom stage.
                """)
        }
        guard change.isRetyped else { return }
        guard column.reference == change.old.reference else {
            guard isCustom else {
                throw SwiftDataError.missingMigration.because(
                    """
                    \(attribute) now refers to another model, or has become an attribute or a relationship. Rename it, \
                    or use a custom stage that sets it to nil in willMigrate.
                    """
                )
            }
            return
        }
        let isLossless = (change.old.type, column.declaration) == ("INTEGER", "REAL")
        guard isLossless || isCustom else {
            throw SwiftDataError.missingMigration.because(
                """
                \(attribute) has changed from \(change.old.valueType) to \(column.valueType). Use a custom stage, \
                which converts the values that can be converted, or rename the new attribute.
                """
            )
        }
        let kinds = Set([change.old.type, column.declaration])
        guard kinds != ["INTEGER", "BLOB"], kinds != ["REAL", "BLOB"] else {
            throw SwiftDataError.missingMigration.because(
                """
                \(attribute) has changed from \(change.old.valueType) to \(column.valueType), which have no values in \
                common. Rename the new attribute, and fill it in didMigrate.
                """
            )
        }
    }

    /// Checks the requirements of a change that depend on stored values.
    func checkValues(_ db: Database) throws {
        func count(_ condition: String) throws -> Int {
            try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table.name.quotedName) WHERE \(condition)") ?? 0
        }
        if change.isFilled, fill == nil {
            let empty = try count("\(name) IS NULL")
            guard empty == 0 else {
                throw SwiftDataError.missingMigration.because(
                    """
                    \(attribute) is no longer optional, but \(empty) models have no value for it. Fill it in \
                    willMigrate, or give it a default value.
                    """
                )
            }
        }
        guard change.isRetyped else { return }
        guard column.reference == change.old.reference else {
            let set = try count("\(name) IS NOT NULL")
            guard set == 0 else {
                throw SwiftDataError.missingMigration.because(
                    """
                    \(attribute) now refers to another model, or has become an attribute or a relationship, but \(set) \
                    models have a value for it. Set it to nil in willMigrate, or rename the new one.
                    """
                )
            }
            return
        }
        let lost = try count("\(name) IS NOT NULL AND NOT (\(isKept))")
        guard lost == 0 else { throw doesNotFit(lost) }
    }

    func doesNotFit(_ count: Int) -> SwiftDataError {
        .missingMigration.because(
            """
            \(attribute) has changed from \(change.old.valueType) to \(column.valueType), but \(count) models have a \
            value that can't be converted. Change them in willMigrate of a custom stage, or rename the new attribute.
            """
        )
    }

    private func cast(_ value: String, _ type: String) -> String { "CAST(\(value) AS \(type))" }

    /// An SQL condition that is true for values that survive conversion and back.
    private var isKept: String {
        let (old, new) = (change.old.type, column.declaration)
        let back = "\(cast(cast(name, new), old)) IS \(name)"
        // "1" is as good a text form of 1.0 as "1.0".
        return (old, new) == ("TEXT", "REAL") ? "(\(back) OR \(cast(cast(name, "INTEGER"), "TEXT")) IS \(name))" : back
    }

    /// The SQL expression for the new value.
    var value: String {
        var value = name
        if change.isRetyped, column.declaration != change.old.type { value = cast(name, column.declaration) }
        if change.isFilled, let fill { value = "coalesce(\(value), \(fill))" }
        return value
    }
}
