import GRDB
import MartletStore

/// Finds models whose required to-one relationship refers to a model that a save deletes. SQLite would set it to NULL.
struct DanglingReferences {
    private let unit: TableUnit
    private var found: [(reference: RequiredReference, row: Int64, target: String)] = []

    init(_ unit: TableUnit) { self.unit = unit }

    /// Must be called before a model's row is deleted.
    mutating func note(_ db: Database, before model: any PersistentModel) throws {
        guard let layout = model._$backing.layout, let row = model._$backing.row else { return }
        for reference in unit.layout.requiredReferences[layout.table.name] ?? [] {
            let select = try unit.statements(
                db,
                """
                SELECT \(TableLayout.key) FROM \(reference.owner.table.name.quotedName)
                WHERE \(reference.column.quotedName) = ?1
                """)
            defer { select.reset() }
            select.bind(1, row)
            while try select.step() { found.append((reference, select.integer(0), layout.name)) }
        }
    }

    /// Must be called after everything is written: models that were deleted too, or refer to another model by now, are
    /// valid.
    ///
    /// - Throws: ``SwiftDataError/modelValidationFailure``.
    func check(_ db: Database) throws {
        for (reference, row, target) in found {
            let select = try unit.statements(
                db,
                """
                SELECT 1 FROM \(reference.owner.table.name.quotedName) WHERE \(TableLayout.key) = ?1
                AND \(reference.column.quotedName) IS NULL
                """)
            select.bind(1, row)
            guard try select.first({ _ in true }) == nil else {
                throw SwiftDataError.modelValidationFailure.because(
                    """
                    A \(target) can't be deleted: \(reference.owner.name).\(reference.property) of another model \
                    refers to it, and must not be empty. Delete that model too, or let it refer to another one.
                    """
                )
            }
        }
    }
}
