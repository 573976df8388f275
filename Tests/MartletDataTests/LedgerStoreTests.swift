import Foundation
import SwiftData
import Synchronization
import Testing

/// A store with snapshots, batches and a history of its own.
struct LedgerStoreTests {
    let configuration = LedgerConfiguration()
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try ModelContainer(for: Note.self, configurations: configuration)
        context = ModelContext(container)
    }

    private func insert(_ texts: String...) throws {
        for text in texts { context.insert(Note(text: text, stars: text.count)) }
        try context.save()
    }

    @Test func snapshotsOfTheirOwnTypeAreUsed() throws {
        let parent = Note(text: "parent")
        let child = Note(text: "child")
        child.parent = parent
        context.insert(child)
        try context.save()
        let other = ModelContext(container)
        let found = try other.fetch(FetchDescriptor<Note>(predicate: #Predicate { $0.text == "child" }))
        #expect(found.first?.parent?.text == "parent")
        #expect(found.first?.parent?.persistentModelID == parent.persistentModelID)
        #expect(configuration.calls.all.contains("cached"))
    }

    /// The store's own snapshots read models while they are made.
    @Test func aSnapshotThatCannotReadIsNotSaved() throws {
        struct Unreachable: Error {}
        let child = Note(text: "child")
        child.parent = Note(text: "parent")
        context.insert(child)
        try context.save()
        let other = ModelContext(container)
        let children = FetchDescriptor<Note>(predicate: #Predicate { $0.text == "child" })
        let found = try #require(try other.fetch(children).first)
        found.stars = 2
        configuration.calls.whileReading.withLock { $0 = { throw Unreachable() } }
        #expect(throws: Unreachable.self) { try other.save() }
        configuration.calls.whileReading.withLock { $0 = nil }
        let stored = try #require(try ModelContext(container).fetch(children).first)
        #expect(stored.stars == 0)
        #expect(stored.parent?.text == "parent")
        try other.save()
        #expect(try ModelContext(container).fetch(children).map { $0.parent?.text } == ["parent"])
    }

    @Test func prefetchingAsksOnceForAll() throws {
        for index in 0..<5 {
            let child = Note(text: "child \(index)")
            child.parent = Note(text: "parent \(index)")
            context.insert(child)
        }
        try context.save()
        let before = configuration.calls.all.count
        var descriptor = FetchDescriptor<Note>(predicate: #Predicate { $0.text.starts(with: "child") })
        descriptor.relationshipKeyPathsForPrefetching = [\.parent]
        let other = ModelContext(container)
        let found = try other.fetch(descriptor)
        #expect(found.map { $0.parent?.text ?? "" } == (0..<5).map { "parent \($0)" })
        #expect(configuration.calls.all.dropFirst(before).filter { $0 == "cached" }.count == 1)
    }

    @Test func storeThatFiltersIsAskedOnce() throws {
        try insert("a", "bb", "ccc")
        let before = configuration.calls.all.count
        var descriptor = FetchDescriptor<Note>(predicate: #Predicate { $0.stars > 1 })
        descriptor.fetchLimit = 1
        descriptor.fetchOffset = 1
        #expect(try context.fetch(descriptor).map(\.text) == ["ccc"])
        #expect(configuration.calls.all.dropFirst(before) == ["fetch limit 2"])
        #expect(try context.fetchCount(FetchDescriptor<Note>(predicate: #Predicate { $0.stars > 1 })) == 2)
        #expect(configuration.calls.all.last == "count")
    }

    @Test func theLargestLimitMayHaveAnOffset() throws {
        try insert("a", "bb", "ccc")
        var descriptor = FetchDescriptor<Note>()
        descriptor.fetchLimit = .max
        descriptor.fetchOffset = 1
        #expect(try context.fetch(descriptor).map(\.text) == ["bb", "ccc"])
    }

    @Test func sortingAloneIsLeftToTheContext() throws {
        try insert("a", "bb", "ccc")
        let descriptor = FetchDescriptor<Note>(
            predicate: #Predicate { $0.stars > 1 }, sortBy: [SortDescriptor(\.stars, order: .reverse)])
        #expect(try context.fetch(descriptor).map(\.text) == ["ccc", "bb"])
    }

    @Test func contextTakesOverWhatTheStoreChanged() throws {
        let note = Note(text: "n", stars: 9)
        context.insert(note)
        try context.save()
        #expect(note.stars == 5)
        #expect(!note.hasChanges)
    }

    @Test func batchDeletesAtOnce() throws {
        try insert("a", "bb", "ccc")
        let held = try context.fetch(FetchDescriptor<Note>())
        context.insert(Note(text: "new", stars: 7))
        try context.delete(model: Note.self, where: #Predicate { $0.stars > 1 })
        #expect(configuration.calls.all.contains("batch"))
        #expect(held.map(\.isDeleted) == [false, true, true])
        #expect(try ModelContext(container).fetch(FetchDescriptor<Note>()).map(\.text) == ["a"])
        context.rollback()
        #expect(try context.fetch(FetchDescriptor<Note>()).map(\.text) == ["a"])
    }

    @Test func modelsDeletedByABatchDontKeepEachOther() throws {
        weak var forgotten: Note?
        do {
            let (first, second) = (Note(text: "a"), Note(text: "b"))
            first.parent = second
            second.parent = first
            context.insert(first)
            try context.save()
            forgotten = first
            try context.delete(model: Note.self)
            #expect(first.isDeleted && first.parent == nil)
        }
        #expect(forgotten == nil)
    }

    @Test func historyIsTheStoresOwn() throws {
        context.author = "app"
        try insert("a", "b")
        context.author = "other"
        let a = try #require(try context.fetch(FetchDescriptor<Note>()).first)
        context.delete(a)
        try context.save()
        let all = try context.fetchHistory(HistoryDescriptor<LedgerTransaction>())
        #expect(all.map(\.author) == ["app", "other"])
        #expect(all.first?.changes.count == 2)
        let token = try #require(all.first?.token)
        let later = try context.fetchHistory(
            HistoryDescriptor<LedgerTransaction>(predicate: #Predicate { $0.token > token }))
        guard case .delete(let change) = try #require(later.first?.changes.first) else {
            Issue.record("no delete")
            return
        }
        #expect(change.changedPersistentIdentifier == a.persistentModelID)
        #expect((change as? LedgerDelete)?.tombstone[\.text] == "a")
        var newest = HistoryDescriptor<LedgerTransaction>(
            sortBy: [SortDescriptor(\.transactionIdentifier, order: .reverse)])
        newest.fetchLimit = 1
        #expect(try context.fetchHistory(newest).map(\.author) == ["other"])
        try context.deleteHistory(
            HistoryDescriptor<LedgerTransaction>(predicate: #Predicate { $0.token <= token }))
        #expect(try context.fetchHistory(HistoryDescriptor<LedgerTransaction>()).map(\.author) == ["other"])
        #expect(throws: SwiftDataError.invalidTransactionFetchRequest) {
            try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        }
    }

    @Test func storeIsToldOfItsContexts() throws {
        #expect(configuration.calls.all == ["begin"])
        do { _ = ModelContext(container).hasChanges }
        #expect(configuration.calls.all == ["begin", "begin", "end"])
        let state = context.editingState
        context.author = "me"
        #expect(context.editingState.id == state.id)
        #expect(context.editingState.author == "me")
    }

    @Test func storeOfTablesCanBeUsedByItself() throws {
        let store = try DefaultStore(
            ModelConfiguration("t", schema: Schema([Company.self, Project.self]), isStoredInMemoryOnly: true),
            migrationPlan: nil)
        let state = context.editingState
        let file = FileManager.default.temporaryDirectory.appending(path: "s-\(UUID().uuidString).store")
        defer { for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + end) } }
        do {
            let saved = ModelContext(
                try ModelContainer(for: Company.self, Project.self, configurations: ModelConfiguration(url: file)))
            let company = Company(code: "c", title: "Old")
            saved.insert(company)
            company.employees = [Employee(name: "Ada")]
            try saved.save()
        }
        let filled = try DefaultStore(
            ModelConfiguration("f", schema: Schema([Company.self, Project.self]), url: file), migrationPlan: nil)
        let companies = try filled.fetch(
            DataStoreFetchRequest(descriptor: FetchDescriptor<Company>(), editingState: state)
        ).fetchedSnapshots
        let staff = try filled.fetch(
            DataStoreFetchRequest(descriptor: FetchDescriptor<Employee>(), editingState: state)
        ).fetchedSnapshots
        let result = try store.save(
            DataStoreSaveChangesRequest(editingState: state, inserted: companies + staff, updated: [], deleted: []))
        #expect(result.remappedIdentifiers.count == 2)
        #expect(result.remappedIdentifiers.values.allSatisfy { $0.storeIdentifier == store.identifier })
        let request = DataStoreFetchRequest(
            descriptor: FetchDescriptor<Employee>(predicate: #Predicate { $0.company?.code == "c" }),
            editingState: state)
        #expect(try store.fetchCount(request) == 1)
        let ada = try store.fetch(request).fetchedSnapshots
        _ = try store.save(
            DataStoreSaveChangesRequest(editingState: state, inserted: [], updated: [], deleted: ada))
        #expect(try store.fetchCount(request) == 0)
        #expect(try store.fetchHistory(HistoryDescriptor()).count == 2)
    }
}
