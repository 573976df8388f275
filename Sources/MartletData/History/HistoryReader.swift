import MartletStore

/// Gives the store's changes the types of their models.
struct HistoryReader {
    let unit: TableUnit
    /// The entity of a row, where the log doesn't say which one of a hierarchy it is.
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
                        transactionIdentifier: transaction))
            case .update:
                .update(
                    DefaultHistoryUpdate<M>(
                        changedPersistentIdentifier: identifier, changeIdentifier: change.id,
                        transactionIdentifier: transaction, updatedAttributes: updated(change, entity, type)))
            case .delete:
                .delete(
                    DefaultHistoryDelete<M>(
                        changedPersistentIdentifier: identifier, changeIdentifier: change.id,
                        transactionIdentifier: transaction, tombstone: tombstone(change, entity, type)))
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

    private func updated<M: PersistentModel>(
        _ change: MartletStore.HistoryChange, _ entity: EntityLayout, _ type: M.Type
    ) -> [PartialKeyPath<M>] {
        entity.columnSlots.compactMap { slot, column in
            guard change.values[entity.table.columns[column].name] != nil else { return nil }
            return entity.slots[slot].keyPath as? PartialKeyPath<M>
        }
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
                return (keyPath, value)
            })
    }
}
