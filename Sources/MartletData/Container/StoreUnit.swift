import MartletStore

/// One of a container's stores.
enum StoreUnit: Sendable {
    case tables(TableUnit)
    case snapshots(SnapshotUnit)

    var tables: TableUnit? { if case .tables(let unit) = self { unit } else { nil } }
    var snapshots: SnapshotUnit? { if case .snapshots(let unit) = self { unit } else { nil } }

    var layout: SchemaLayout {
        switch self {
        case .tables(let unit): unit.layout
        case .snapshots(let unit): unit.layout
        }
    }

    /// The store's identifier in the identifiers of its models.
    var identifier: String {
        switch self {
        case .tables(let unit): unit.identifier
        case .snapshots(let unit): unit.identifier
        }
    }

    /// The observers that are notified of saves.
    var changes: StoreChangeHub {
        switch self {
        case .tables(let unit): unit.changes
        case .snapshots(let unit): unit.changes
        }
    }

    var isReadOnly: Bool { tables?.store.configuration.isReadOnly ?? false }

    /// The identifier for a row number as used in contexts.
    func identifier(_ entity: EntityLayout, _ row: Int64) -> PersistentIdentifier? {
        switch self {
        case .tables(let unit):
            PersistentIdentifier(storeIdentifier: unit.identifier, entityName: entity.name, key: .row(row))
        case .snapshots(let unit): unit.identifier(row)
        }
    }

    /// The row number for an identifier. Nil for an identifier of another store, or of a model that was never saved.
    func row(_ identifier: PersistentIdentifier) -> Int64? {
        switch self {
        case .tables(let unit): identifier.storeIdentifier == unit.identifier ? identifier.row : nil
        case .snapshots(let unit): unit.row(identifier)
        }
    }

    func deleteAllData() throws {
        switch self {
        case .tables(let unit): try unit.deleteAllData()
        case .snapshots(let unit): try unit.call { try $0.erase() }
        }
    }
}
