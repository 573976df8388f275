import Foundation
import SwiftData
import Synchronization
import Testing

/// Observers, notifications, batches and partial fetches where they meet stores of one's own, migrations and ephemeral
/// attributes.
struct OwnStoreObservationTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try ModelContainer(for: Note.self, configurations: LedgerConfiguration())
        context = ModelContext(container)
    }

    private func insert(_ texts: String...) throws {
        for text in texts { context.insert(Note(text: text, stars: text.count)) }
        try context.save()
    }

    // MARK: Stores of one's own

    @Test func resultsFollowWhatOtherContextsSaveAndDelete() throws {
        let observer = try ResultsObserver<Note, Never>(sortBy: [SortDescriptor(\.text)], modelContainer: container)
        #expect(observer.results.isEmpty)
        try insert("a", "bb")
        #expect(observer.results.map(\.text) == ["a", "bb"])
        try context.delete(model: Note.self, where: #Predicate { $0.stars > 1 })
        #expect(observer.results.map(\.text) == ["a"])
        #expect(observer.fetchError == nil)
    }

    @Test func didSaveCarriesTheStoresOwnToken() throws {
        let found = Mutex<(token: LedgerToken?, inserted: Set<PersistentIdentifier>?)>((nil, nil))
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave, object: context, queue: nil
        ) { notification in
            typealias Key = ModelContext.NotificationKey
            let token = notification.userInfo?[Key.historyTokens] as? LedgerToken
            let inserted = notification.userInfo?[Key.insertedIdentifiers] as? Set<PersistentIdentifier>
            found.withLock { $0 = (token, inserted) }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        let note = Note(text: "a")
        context.insert(note)
        try context.save()
        let (token, inserted) = found.withLock { $0 }
        #expect(token?.number == 1)
        #expect(inserted == [note.persistentModelID])
        #expect(note.persistentModelID.storeIdentifier == "ledger")
    }

    @Test func batchesAreReadFromTheStore() throws {
        try insert("a", "bb", "ccc", "dddd", "eeeee")
        let new = Note(text: "new")
        context.insert(new)
        let descriptor = FetchDescriptor<Note>(sortBy: [SortDescriptor(\.text)])
        let found = try context.fetch(descriptor, batchSize: 2)
        #expect(found.map(\.text) == ["a", "bb", "ccc", "dddd", "eeeee", "new"])
        #expect(found.last === new)
        let identifiers = try context.fetchIdentifiers(descriptor, batchSize: 2)
        #expect(Array(identifiers) == found.map(\.persistentModelID))
        #expect(identifiers.dropLast().allSatisfy { $0.storeIdentifier == "ledger" })
        #expect(context.model(for: new.persistentModelID) === new)
        try context.save()
        #expect(context.model(for: new.persistentModelID) === new)
        var seen: [String] = []
        try ModelContext(container).enumerate(descriptor, batchSize: 2) { seen.append($0.text) }
        #expect(seen == ["a", "bb", "ccc", "dddd", "eeeee", "new"])
    }

    @Test func absentModelHasItsIdentifier() throws {
        let id = try PersistentIdentifier.identifier(for: "ledger", entityName: "Note", primaryKey: 77)
        #expect(context.existingModel(for: id) == nil)
        #expect(context.model(for: id).persistentModelID == id)
        #expect(context.model(for: id).isDeleted)
    }

    @Test func autosaveSavesBeforeAFetch() throws {
        context.autosaveEnabled = true
        context.insert(Note(text: "a"))
        #expect(try context.fetchCount(FetchDescriptor<Note>()) == 1)
        #expect(!context.hasChanges)
    }

    @Test func historyOfOwnStoresIsRefusedToTheHistoryObserver() {
        #expect(throws: SwiftDataError.invalidTransactionFetchRequest) {
            try HistoryObserver(modelContainer: container)
        }
        #expect(throws: SwiftDataError.invalidTransactionFetchRequest) {
            try HistoryObserver(observedModels: [Note.self], modelContainer: container)
        }
    }

    @Test func changesOfOwnStoresHaveTheirOwnNumbers() throws {
        try insert("a")
        let change = try #require(
            try context.fetchHistory(HistoryDescriptor<LedgerTransaction>()).first?.changes.first)
        #expect(change.changeIdentifier == nil)
        guard case .insert(let insert) = change else {
            Issue.record("no insert")
            return
        }
        #expect((insert as? LedgerInsert)?.changeIdentifier == "1/\(change.changedPersistentIdentifier)")
    }

    @Test func historyIsAskedForChangesByTheirNumber() throws {
        let container = try companyContainer()
        let context = ModelContext(container)
        context.insert(Employee(name: "Ada"))
        try context.save()
        let change = try #require(
            try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).first?.changes.first)
        let number = try #require(change.changeIdentifier)
        func count(_ number: Int64) throws -> Int {
            try context.fetchHistory(
                HistoryDescriptor<DefaultHistoryTransaction>(
                    predicate: #Predicate { $0.changes.contains { $0.changeIdentifier == number } })
            ).count
        }
        #expect(try count(number) == 1)
        #expect(try count(number + 10) == 0)
    }

    // MARK: Ephemeral attributes

    @Test func partialFetchLeavesEphemeralAttributesAlone() throws {
        let container = try ModelContainer(
            for: Draft.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        context.insert(Draft(title: "a"))
        try context.save()
        let other = ModelContext(container)
        var descriptor = FetchDescriptor<Draft>()
        descriptor.propertiesToFetch = [\.cursor]
        let draft = try #require(try other.fetch(descriptor).first)
        #expect(draft.cursor == 3)
        draft.cursor = 7
        try other.save()
        descriptor.propertiesToFetch = [\.title]
        #expect(try other.fetch(descriptor).first === draft)
        #expect(draft.cursor == 7)
        #expect(draft.title == "a")
        #expect(try other.fetch(FetchDescriptor<Draft>()).first?.cursor == 7)
    }

    // MARK: Migrations

    enum Observed: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxUnique.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxUnique.self,
                    willMigrate: { context in
                        #expect(throws: SwiftDataError.configuration) {
                            try HistoryObserver(modelContainer: context.container)
                        }
                        #expect(throws: SwiftDataError.configuration) { try context.container.erase() }
                        let observer = try ResultsObserver<BoxV1.Box, Never>(modelContext: context)
                        #expect(observer.results.count == 2)
                        var descriptor = FetchDescriptor<BoxV1.Box>()
                        descriptor.propertiesToFetch = [\.name]
                        for box in try context.fetch(descriptor) { box.weight += 1 }
                        #expect(try context.fetch(descriptor, batchSize: 1).map(\.weight) == [11, 21])
                        context.author = "stage"
                        try context.save()
                        let found = try context.fetchHistory(
                            HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.author == "stage" })
                        )
                        #expect(found.map(\.changes.count) == [2])
                    }, didMigrate: nil)
            ]
        }
    }

    @Test func stageOfAMigrationFetchesInPartsAndIsNotObserved() throws {
        try MigratedStore.with(
            fill: { context in
                context.insert(BoxV1.Box("a", weight: 10))
                context.insert(BoxV1.Box("b", weight: 20))
            },
            { store in
                try store.use(BoxUnique.self, Observed.self) { context throws in
                    #expect(try context.all(BoxUnique.Box.self).map(\.weight) == [11, 21])
                }
            })
    }
}
