import GRDB
import MartletStore

/// Whether a column can become another one without losing a value, and by which SQL.
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

    /// What a change needs that doesn't depend on the values.
    ///
    /// - Throws: ``SwiftDataError/missingMigration``.
    func check() throws {
        if change.isFilled, fill == nil, !isCustom {
            throw SwiftDataError.missingMigration.because(
                "\(attribute) is no longer optional. Give it a default value where it is declared, or fill it in willMigrate of a custom stage."
            )
        }
        guard change.isRetyped else { return }
        guard column.reference == change.old.reference else {
            guard isCustom else {
                throw SwiftDataError.missingMigration.because(
                    "\(attribute) leads to another model now, or has become an attribute or a relationship. Give it another name; or make the stage a custom one that sets it to nil in willMigrate."
                )
            }
            return
        }
        let isLossless = (change.old.type, column.declaration) == ("INTEGER", "REAL")
        guard isLossless || isCustom else {
            throw SwiftDataError.missingMigration.because(
                "\(attribute) was \(change.old.valueType), and is \(column.valueType) now. Make the stage a custom one, which converts the values that can be; or give the new attribute another name."
            )
        }
        let kinds = Set([change.old.type, column.declaration])
        guard kinds != ["INTEGER", "BLOB"], kinds != ["REAL", "BLOB"] else {
            throw SwiftDataError.missingMigration.because(
                "\(attribute) was \(change.old.valueType), and is \(column.valueType) now: those have no values in common. Give the new attribute another name, and fill it in didMigrate."
            )
        }
    }

    /// What a change needs of the values that are there.
    func checkValues(_ db: Database) throws {
        func count(_ condition: String) throws -> Int {
            try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table.name.quotedName) WHERE \(condition)") ?? 0
        }
        if change.isFilled, fill == nil {
            let empty = try count("\(name) IS NULL")
            guard empty == 0 else {
                throw SwiftDataError.missingMigration.because(
                    "\(attribute) is no longer optional, and \(empty) models have no value for it. Fill it in willMigrate, or give it a default value."
                )
            }
        }
        guard change.isRetyped else { return }
        guard column.reference == change.old.reference else {
            let set = try count("\(name) IS NOT NULL")
            guard set == 0 else {
                throw SwiftDataError.missingMigration.because(
                    "\(attribute) leads to another model now, or has become an attribute or a relationship, and \(set) models have a value for it. Set it to nil in willMigrate, or give the new one another name."
                )
            }
            return
        }
        let lost = try count("\(name) IS NOT NULL AND NOT (\(isKept))")
        guard lost == 0 else { throw doesNotFit(lost) }
    }

    func doesNotFit(_ count: Int) -> SwiftDataError {
        .missingMigration.because(
            "\(attribute) was \(change.old.valueType), and is \(column.valueType) now: \(count) models have a value that isn't one. Change them in willMigrate of a custom stage, or give the new attribute another name."
        )
    }

    private func cast(_ value: String, _ type: String) -> String { "CAST(\(value) AS \(type))" }

    /// True of a value that can be had back.
    private var isKept: String {
        let (old, new) = (change.old.type, column.declaration)
        let back = "\(cast(cast(name, new), old)) IS \(name)"
        // "1" is as good a text of 1.0 as "1.0".
        return (old, new) == ("TEXT", "REAL") ? "(\(back) OR \(cast(cast(name, "INTEGER"), "TEXT")) IS \(name))" : back
    }

    /// The SQL of the new value.
    var value: String {
        var value = name
        if change.isRetyped, column.declaration != change.old.type { value = cast(name, column.declaration) }
        if change.isFilled, let fill { value = "coalesce(\(value), \(fill))" }
        return value
    }
}
