/// A type-erased custom store.
protocol SnapshotStoring: AnyObject {
    var identifier: String { get }
    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> FetchedRecords
    func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int
    func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier]
    func cached(_ identifiers: [PersistentIdentifier], _ state: EditingState) throws -> [SnapshotRecord]
    /// Makes the snapshots of a save, which may read more models.
    ///
    /// - Returns: what saves them.
    func prepareSave(_ changes: SnapshotChanges, _ state: EditingState) -> () throws -> SavedRecords
    func erase() throws
    func begin(_ state: EditingState)
    func end(_ state: EditingState)
    /// Returns false if the store doesn't delete by a predicate.
    func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws -> Bool
    /// Returns nil if the store keeps no history of such transactions.
    func fetchHistory<H: HistoryTransaction>(_ descriptor: HistoryDescriptor<H>) throws -> [H]?
    /// Returns false if the store keeps no history of such transactions.
    func deleteHistory<H: HistoryTransaction>(_ descriptor: HistoryDescriptor<H>) throws -> Bool
}

struct FetchedRecords {
    var fetched: [SnapshotRecord]
    var related: [SnapshotRecord]
}

struct SavedRecords {
    var remapped: [PersistentIdentifier: PersistentIdentifier]
    var reregistered: [SnapshotRecord]
    var token: (any HistoryToken)?
}

/// The changes that a save passes to a store.
struct SnapshotChanges {
    var inserted: [any BackingData] = []
    var updated: [any BackingData] = []
    var deleted: [any BackingData] = []
}

final class DataStoreBox<Store: DataStore>: SnapshotStoring {
    private let store: Store

    init(_ store: Store) { self.store = store }

    var identifier: String { store.identifier }

    private func record(_ snapshot: Store.Snapshot) throws -> SnapshotRecord {
        if let snapshot = snapshot as? DefaultSnapshot { return snapshot.record }
        return try JSONDecoder().decode(DefaultSnapshot.self, from: JSONEncoder().encode(snapshot)).record
    }

    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> FetchedRecords {
        let result = try store.fetch(request)
        return FetchedRecords(
            fetched: try result.fetchedSnapshots.map(record), related: try result.relatedSnapshots.values.map(record))
    }

    func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        try store.fetchCount(request)
    }

    func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier] {
        try store.fetchIdentifiers(request)
    }

    func cached(_ identifiers: [PersistentIdentifier], _ state: EditingState) throws -> [SnapshotRecord] {
        try store.cachedSnapshots(for: identifiers, editingState: state).values.map(record)
    }

    func prepareSave(_ changes: SnapshotChanges, _ state: EditingState) -> () throws -> SavedRecords {
        var related: [PersistentIdentifier: any BackingData] = [:]
        for data in changes.inserted + changes.updated {
            if let identifier = data.persistentModelID { related[identifier] = data }
        }
        func snapshots(_ all: [any BackingData]) -> [Store.Snapshot] {
            all.map { Store.Snapshot(from: $0, relatedBackingDatas: &related) }
        }
        let request = DataStoreSaveChangesRequest(
            editingState: state, inserted: snapshots(changes.inserted), updated: snapshots(changes.updated),
            deleted: snapshots(changes.deleted))
        return { [self] in
            let result = try store.save(request)
            return SavedRecords(
                remapped: result.remappedIdentifiers,
                reregistered: try result.snapshotsToReregister.map {
                    var record = try record($0.value)
                    record.identifier = $0.key
                    return record
                }, token: result.historyToken)
        }
    }

    func erase() throws { try store.erase() }
    func begin(_ state: EditingState) { store.initializeState(for: state) }
    func end(_ state: EditingState) { store.invalidateState(for: state) }

    func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws -> Bool {
        guard let batching = store as? any DataStoreBatching else { return false }
        do {
            try batching.delete(request)
            return true
        } catch DataStoreError.unsupportedFeature, DataStoreError.preferInMemoryFilter {
            return false
        }
    }

    func fetchHistory<H: HistoryTransaction>(_ descriptor: HistoryDescriptor<H>) throws -> [H]? {
        func open<P: HistoryProviding>(_ provider: P) throws -> [H]? {
            guard let descriptor = descriptor as? HistoryDescriptor<P.HistoryType> else { return nil }
            return try provider.fetchHistory(descriptor) as? [H]
        }
        guard let provider = store as? any HistoryProviding else { return nil }
        return try open(provider)
    }

    func deleteHistory<H: HistoryTransaction>(_ descriptor: HistoryDescriptor<H>) throws -> Bool {
        func open<P: HistoryProviding>(_ provider: P) throws -> Bool {
            guard let descriptor = descriptor as? HistoryDescriptor<P.HistoryType> else { return false }
            try provider.deleteHistory(descriptor)
            return true
        }
        guard let provider = store as? any HistoryProviding else { return false }
        return try open(provider)
    }
}
