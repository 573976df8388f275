import MartletStore

/// A row as it was read.
struct FetchedRow {
    let row: Int64
    /// What the row is: of a hierarchy, one of its classes.
    let entity: EntityLayout
    /// By slot of the entity.
    let values: [Value]

    /// Reads what ``TableLayout/selection`` selects.
    ///
    /// - Throws: ``SwiftDataError/corruptValue`` where a row holds what an attribute can't.
    static func all(_ statement: PreparedStatement, _ entity: EntityLayout) throws -> [FetchedRow] {
        var found: [FetchedRow] = []
        guard entity.table.hasTypeColumn else {
            while try statement.step() { found.append(try FetchedRow(statement, entity)) }
            return found
        }
        let classes = Dictionary(
            entity.root.family.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        while try statement.step() {
            let concrete = statement.optionalText(1).flatMap { classes[$0] } ?? entity
            found.append(try FetchedRow(statement, concrete))
        }
        return found
    }

    private init(_ statement: PreparedStatement, _ entity: EntityLayout) throws {
        row = statement.integer(0)
        self.entity = entity
        var values = entity.initialValues
        for reader in entity.readers {
            let value = statement.value(reader.column)
            if let accepts = reader.accepts, !accepts(value) {
                throw SwiftDataError.corruptValue.because(
                    "\(entity.name).\(entity.slots[reader.slot].name) of row \(statement.integer(0)) has a value that isn't of its type. Another program wrote it, or the type changed."
                )
            }
            values[reader.slot] = value
        }
        self.values = values
    }
}
