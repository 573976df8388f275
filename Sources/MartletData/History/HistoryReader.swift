import MartletStore

/// Converts the store's changes to changes of typed models.
struct HistoryReader {
    let unit: TableUnit
    /// Looks up the entity of a row, if the log doesn't record which one of a hierarchy it is.
    let entityOfRow: (TableLayout, Int64) -> String?

    func transaction(_ transaction: MartletStore.HistoryTransaction) -> DefaultHistoryTransaction {
        DefaultHistoryTransaction(
            author: transaction.author, changes: transaction.changes.compactMap { change($0, transaction.id) },
            processIdentifier: transaction.process ?? "", storeIdentifier: unit.identifier,
            timestamp: transaction.timestamp, token: DefaultHistoryToken(transaction.token),
            transactionIdentifier: transaction.id, origin: transaction.origin)
    }

    private func change(_ change: MartletStore.HistoryChange, _ transaction: Int64) -> HistoryChange? {
        guard let row = change.row, let entity = entity(change, row) else { return nil }
        let identifier = PersistentIdentifier(
            storeIdentifier: unit.identifier, entityName: entity.name, key: .row(row))
        func make<M: PersistentModel>(_ type: M.Type) -> HistoryChange {
            switch change.kind {
            case .insert:
                .insert(
                    DefaultHistoryInsert<M>(
                        changedPersistentIdentifier: identifier, changeIdentifier: change.id,
                        transactionIdentifier: transaction, values: values(change.values, entity, type)))
            case .update:
                .update(
                    DefaultHistoryUpdate<M>(
                        changedPersistentIdentifier: identifier, changeIdentifier: change.id,
                        transactionIdentifier: transaction, values: values(change.values, entity, type),
                        old: values(change.oldValues, entity, type)))
            case .delete:
                .delete(
                    DefaultHistoryDelete<M>(
                        changedPersistentIdentifier: identifier, changeIdentifier: change.id,
                        transactionIdentifier: transaction, tombstone: tombstone(change, entity, type),
                        old: values(change.tombstone, entity, type)))
            }
        }
        return make(entity.type)
    }

    private func entity(_ change: MartletStore.HistoryChange, _ row: Int64) -> EntityLayout? {
        guard let base = unit.layout[named: change.entity] else { return nil }
        guard base.table.hasTypeColumn else { return base }
        let recorded = [change.values, change.oldValues, change.tombstone].lazy.compactMap { values -> String? in
            guard case .text(let name) = values[TableLayout.type] else { return nil }
            return name
        }.first
        let name = recorded ?? entityOfRow(base.table, row)
        return name.flatMap { unit.layout[named: $0] } ?? base
    }

    private func values<M: PersistentModel>(
        _ recorded: [String: Value], _ entity: EntityLayout, _ type: M.Type
    ) -> HistoryValues<M> {
        HistoryValues(
            entity.columnSlots.compactMap { slot, column in
                guard let value = recorded[entity.table.columns[column].name],
                    let keyPath = entity.slots[slot].keyPath as? PartialKeyPath<M>
                else { return nil }
                return .init(
                    keyPath: keyPath, stored: RecordedValue(value, entity.slots[slot]),
                    target: target(value, entity.slots[slot].link))
            })
    }

    private func target(_ value: Value, _ link: Link?) -> PersistentIdentifier? {
        guard let link, case .integer(let row) = value else { return nil }
        let table = link.destination.table
        let name = table.hasTypeColumn ? entityOfRow(table, row) : nil
        return PersistentIdentifier(
            storeIdentifier: unit.identifier, entityName: name ?? link.destination.name, key: .row(row))
    }

    private func tombstone<M: PersistentModel>(
        _ change: MartletStore.HistoryChange, _ entity: EntityLayout, _ type: M.Type
    ) -> HistoryTombstone<M> {
        HistoryTombstone(
            entity.columnSlots.compactMap { slot, column in
                guard case .attribute(let attribute, _) = entity.slots[slot].kind, attribute.preservesValue,
                    let value = change.tombstone[entity.table.columns[column].name],
                    let keyPath = entity.slots[slot].keyPath as? PartialKeyPath<M>
                else { return nil }
                return (keyPath, RecordedValue(value, entity.slots[slot]))
            })
    }
}
