import MartletStore

/// A row as read from the store.
struct FetchedRow {
    let row: Int64
    /// The row's entity: in a hierarchy, one of its classes.
    let entity: EntityLayout
    /// False for a row of a class that isn't in the schema, which is read as the requested one.
    let isOfKnownClass: Bool
    /// Indexed by slot of the entity.
    let values: [Value]
    /// The slots whose columns weren't read.
    let unread: Set<Int>

    /// Reads what ``TableLayout/selection`` selects, or the selection of some columns.
    ///
    /// - Parameter unreadable: called for each row that has a value that an attribute's type can't represent. If it
    ///   doesn't throw, the row is left out.
    /// - Throws: ``SwiftDataError/corruptValue`` for such a row, unless `unreadable` says otherwise.
    static func all(
        _ statement: PreparedStatement, _ entity: EntityLayout, _ columns: [Int]? = nil,
        unreadable: (any Error) throws -> Void = { throw $0 }
    ) throws -> [FetchedRow] {
        var found: [FetchedRow] = []
        let places = columns.map { columns in
            Dictionary(uniqueKeysWithValues: columns.enumerated().map { (Int32($1 + 2), Int32($0 + 2)) })
        }
        func add(_ entity: EntityLayout, isOfKnownClass: Bool) throws {
            do {
                found.append(try FetchedRow(statement, entity, isOfKnownClass: isOfKnownClass, places))
            } catch {
                try unreadable(error)
            }
        }
        guard entity.table.hasTypeColumn else {
            while try statement.step() { try add(entity, isOfKnownClass: true) }
            return found
        }
        let classes = Dictionary(
            entity.root.family.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        while try statement.step() {
            let concrete = statement.optionalText(1).flatMap { classes[$0] }
            try add(concrete ?? entity, isOfKnownClass: concrete != nil)
        }
        return found
    }

    /// - Parameter places: the position in this selection of each column of the whole selection.
    private init(
        _ statement: PreparedStatement, _ entity: EntityLayout, isOfKnownClass: Bool, _ places: [Int32: Int32]?
    ) throws {
        row = statement.integer(0)
        self.entity = entity
        self.isOfKnownClass = isOfKnownClass
        var values = entity.initialValues
        var unread: Set<Int> = []
        for reader in entity.readers {
            var column = reader.column
            if let places {
                guard let place = places[column] else {
                    unread.insert(reader.slot)
                    continue
                }
                column = place
            }
            let value = statement.value(column)
            if let accepts = reader.accepts, !accepts(value) {
                throw SwiftDataError.corruptValue.because(
                    """
                    \(entity.name).\(entity.slots[reader.slot].name) of row \(statement.integer(0)) has a value of \
                    another type. Another program wrote it, or the type changed.
                    """
                )
            }
            values[reader.slot] = value
        }
        self.values = values
        self.unread = unread
    }
}
