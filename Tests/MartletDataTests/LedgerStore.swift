import Foundation
import SwiftData
import Synchronization

// A store of one model with snapshots, a history and batches of its own. It filters by itself where it can.

@Model
final class Note {
    var text: String
    var stars: Int
    var parent: Note?
    init(text: String, stars: Int = 0) {
        self.text = text
        self.stars = stars
    }
}

struct NoteSnapshot: DataStoreSnapshot {
    var persistentIdentifier: PersistentIdentifier
    var text: String
    var stars: Int
    var parent: PersistentIdentifier?

    init(
        from backingData: any BackingData, relatedBackingDatas: inout [PersistentIdentifier: any BackingData]
    ) {
        guard let data = backingData as? any BackingData<Note>, let identifier = data.persistentModelID else {
            preconditionFailure("The store keeps notes only.")
        }
        persistentIdentifier = identifier
        text = data.getValue(forKey: \.text)
        stars = data.getValue(forKey: \.stars)
        parent = data.getValue(forKey: \.parent)?.persistentModelID
    }

    func copy(
        persistentIdentifier: PersistentIdentifier, remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]?
    ) -> NoteSnapshot {
        var copy = self
        copy.persistentIdentifier = persistentIdentifier
        copy.parent = parent.map { remappedIdentifiers?[$0] ?? $0 }
        return copy
    }

    var note: Note { Note(text: text, stars: stars) }
}

struct LedgerConfiguration: DataStoreConfiguration {
    typealias Store = LedgerStore
    var name = "ledger"
    var schema: Schema?
    /// What the store was asked, for tests.
    let calls = Calls()

    final class Calls: Sendable {
        private let log = Mutex<[String]>([])
        var all: [String] { log.withLock { $0 } }
        func note(_ call: String) { log.withLock { $0.append(call) } }
        /// What the store does first when it is to save.
        let whileSaving = Mutex<(@Sendable () throws -> Void)?>(nil)
        let whileReading = Mutex<(@Sendable () throws -> Void)?>(nil)
    }

    static func == (a: Self, b: Self) -> Bool { a.calls === b.calls }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(calls)) }
}

final class LedgerStore: DataStore, DataStoreBatching, HistoryProviding {
    typealias Configuration = LedgerConfiguration
    typealias Snapshot = NoteSnapshot
    typealias HistoryType = LedgerTransaction

    let configuration: LedgerConfiguration
    let schema: Schema
    let identifier = "ledger"
    private var notes: [NoteSnapshot] = []
    private var history: [LedgerTransaction] = []
    private var nextKey = 1

    init(_ configuration: LedgerConfiguration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
        self.configuration = configuration
        schema = configuration.schema ?? Schema([Note.self])
    }

    func initializeState(for editingState: EditingState) { configuration.calls.note("begin") }
    func invalidateState(for editingState: EditingState) { configuration.calls.note("end") }

    private func matches<T>(_ predicate: Predicate<T>?) throws -> [NoteSnapshot] {
        guard let predicate else { return notes }
        guard let predicate = predicate as Any as? Predicate<Note> else { throw DataStoreError.invalidPredicate }
        return try notes.filter { try predicate.evaluate($0.note) }
    }

    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, NoteSnapshot>
    {
        try configuration.calls.whileReading.withLock { $0 }?()
        configuration.calls.note("fetch limit \(request.descriptor.fetchLimit.map(String.init) ?? "none")")
        guard request.descriptor.sortBy.isEmpty else { throw DataStoreError.preferInMemorySort }
        let found = try matches(request.descriptor.predicate)
        let limited = request.descriptor.fetchLimit.map { Array(found.prefix($0)) } ?? found
        return DataStoreFetchResult(descriptor: request.descriptor, fetchedSnapshots: limited)
    }

    func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        configuration.calls.note("count")
        return try matches(request.descriptor.predicate).count
    }

    func cachedSnapshots(for persistentIdentifiers: [PersistentIdentifier], editingState: EditingState) throws
        -> [PersistentIdentifier: NoteSnapshot]
    {
        try configuration.calls.whileReading.withLock { $0 }?()
        configuration.calls.note("cached")
        let found = notes.filter { persistentIdentifiers.contains($0.persistentIdentifier) }
        return Dictionary(uniqueKeysWithValues: found.map { ($0.persistentIdentifier, $0) })
    }

    func save(_ request: DataStoreSaveChangesRequest<NoteSnapshot>) throws -> DataStoreSaveChangesResult<NoteSnapshot> {
        try configuration.calls.whileSaving.withLock { $0 }?()
        var lasting: [PersistentIdentifier: PersistentIdentifier] = [:]
        var corrected: [PersistentIdentifier: NoteSnapshot] = [:]
        var changes: [HistoryChange] = []
        let number = (history.last?.transactionIdentifier ?? 0) + 1
        for snapshot in request.inserted {
            lasting[snapshot.persistentIdentifier] = try .identifier(
                for: identifier, entityName: "Note", primaryKey: nextKey)
            nextKey += 1
        }
        for snapshot in request.inserted {
            guard let identifier = lasting[snapshot.persistentIdentifier] else { continue }
            var saved = snapshot.copy(persistentIdentifier: identifier, remappedIdentifiers: lasting)
            // No note has more than five stars here.
            if saved.stars > 5 {
                saved.stars = 5
                corrected[identifier] = saved
            }
            notes.append(saved)
            changes.append(
                .insert(LedgerInsert(changedPersistentIdentifier: identifier, transactionIdentifier: number)))
        }
        for snapshot in request.updated {
            let new = snapshot.copy(
                persistentIdentifier: snapshot.persistentIdentifier, remappedIdentifiers: lasting)
            notes = notes.map { $0.persistentIdentifier == new.persistentIdentifier ? new : $0 }
        }
        for snapshot in request.deleted { remove(snapshot, number, &changes) }
        note(changes, number, request.editingState.author)
        return DataStoreSaveChangesResult(
            for: identifier, remappedIdentifiers: lasting, snapshotsToReregister: corrected,
            historyToken: history.last?.token)
    }

    private func remove(_ snapshot: NoteSnapshot, _ number: Int, _ changes: inout [HistoryChange]) {
        notes.removeAll { $0.persistentIdentifier == snapshot.persistentIdentifier }
        changes.append(
            .delete(
                LedgerDelete(
                    changedPersistentIdentifier: snapshot.persistentIdentifier, transactionIdentifier: number,
                    tombstone: HistoryTombstone(preserving: [\Note.text: snapshot.text]))))
    }

    private func note(_ changes: [HistoryChange], _ number: Int, _ author: String?) {
        history.append(
            LedgerTransaction(
                author: author, changes: changes, storeIdentifier: identifier, timestamp: Date(),
                token: LedgerToken(number: number), transactionIdentifier: number))
    }

    func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws {
        configuration.calls.note("batch")
        var changes: [HistoryChange] = []
        let number = (history.last?.transactionIdentifier ?? 0) + 1
        for snapshot in try matches(request.predicate) { remove(snapshot, number, &changes) }
        note(changes, number, request.editingState.author)
    }

    func fetchHistory(_ descriptor: HistoryDescriptor<LedgerTransaction>) throws -> [LedgerTransaction] {
        let found = try history.filter { try descriptor.predicate?.evaluate($0) ?? true }
        return found.sorted(using: descriptor.sortBy)
    }

    func deleteHistory(_ descriptor: HistoryDescriptor<LedgerTransaction>) throws {
        history = try history.filter { try !(descriptor.predicate?.evaluate($0) ?? true) }
    }
}

struct LedgerToken: HistoryToken {
    var number: Int
    var id: Int { number }
    var storeIdentifier: String { "ledger" }
    var tokenValue: Int? { number }
    static func < (a: Self, b: Self) -> Bool { a.number < b.number }
}

struct LedgerTransaction: HistoryTransaction {
    var author: String?
    var changes: [HistoryChange]
    var storeIdentifier: String
    var timestamp: Date
    var token: LedgerToken
    var transactionIdentifier: Int
    var id: Int { transactionIdentifier }

    static func == (a: Self, b: Self) -> Bool { a.id == b.id }
    func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

struct LedgerInsert: HistoryInsert {
    typealias Model = Note
    var changedPersistentIdentifier: PersistentIdentifier
    var transactionIdentifier: Int
    var changeIdentifier: String { "\(transactionIdentifier)/\(changedPersistentIdentifier)" }
}

struct LedgerDelete: HistoryDelete {
    typealias Model = Note
    var changedPersistentIdentifier: PersistentIdentifier
    var transactionIdentifier: Int
    var tombstone: HistoryTombstone<Note>
    var changeIdentifier: String { "\(transactionIdentifier)/\(changedPersistentIdentifier)" }
}
