import Foundation
import SwiftData
import Synchronization
import Testing

/// Collects notifications of one context, on whichever thread they come.
private final class Collected: Sendable {
    struct Saved: Sendable {
        var inserted: Set<PersistentIdentifier>?
        var updated: Set<PersistentIdentifier>?
        var deleted: Set<PersistentIdentifier>?
        var token: DefaultHistoryToken?
        var hasInfo: Bool
    }
    private let all = Mutex<[Saved]>([])
    var saved: [Saved] { all.withLock { $0 } }

    func observe(_ name: Notification.Name, _ context: ModelContext) -> any NSObjectProtocol {
        NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { [self] notification in
            typealias Key = ModelContext.NotificationKey
            let info = notification.userInfo
            all.withLock {
                $0.append(
                    Saved(
                        inserted: info?[Key.insertedIdentifiers] as? Set<PersistentIdentifier>,
                        updated: info?[Key.updatedIdentifiers] as? Set<PersistentIdentifier>,
                        deleted: info?[Key.deletedIdentifiers] as? Set<PersistentIdentifier>,
                        token: info?[Key.historyTokens] as? DefaultHistoryToken, hasInfo: info != nil))
            }
        }
    }
}

struct NotificationTests {
    private let container: ModelContainer
    private let context: ModelContext

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
    }

    @Test func didSaveNamesWhatWasSaved() throws {
        let (ada, bob, cleo) = (Employee(name: "Ada"), Employee(name: "Bob"), Employee(name: "Cleo"))
        context.insert(ada)
        context.insert(bob)
        try context.save()
        let bobsID = bob.persistentModelID
        let collected = Collected()
        let observer = collected.observe(ModelContext.didSave, context)
        defer { NotificationCenter.default.removeObserver(observer) }
        ada.age = 5
        context.delete(bob)
        context.insert(cleo)
        try context.save()
        let saved = try #require(collected.saved.first)
        #expect(collected.saved.count == 1)
        #expect(saved.inserted == [cleo.persistentModelID])
        #expect(saved.updated == [ada.persistentModelID])
        #expect(saved.deleted == [bobsID])
        #expect(cleo.persistentModelID.storeIdentifier != nil)
    }

    @Test func didSaveCarriesTheTokenOfItsTransaction() throws {
        let collected = Collected()
        let observer = collected.observe(ModelContext.didSave, context)
        defer { NotificationCenter.default.removeObserver(observer) }
        context.insert(Employee(name: "Ada"))
        try context.save()
        let token = try #require(collected.saved.first?.token)
        context.insert(Badge(number: 1))
        try context.save()
        let after = try context.fetchHistory(
            HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token > token }))
        #expect(after.flatMap(\.changes).map(\.changedPersistentIdentifier.entityName) == ["Badge"])
        #expect(after.map(\.token) == [collected.saved.last?.token].compactMap { $0 })
    }

    @Test func upsertIsAnUpdate() throws {
        context.insert(Company(code: "a", title: "A"))
        try context.save()
        let collected = Collected()
        let observer = collected.observe(ModelContext.didSave, context)
        defer { NotificationCenter.default.removeObserver(observer) }
        let again = Company(code: "a", title: "B")
        context.insert(again)
        try context.save()
        #expect(collected.saved.first?.inserted == [])
        #expect(collected.saved.first?.updated == [again.persistentModelID])
    }

    @Test func willSaveComesFirstAndHasNoInfo() throws {
        let (before, after) = (Collected(), Collected())
        let observers = [
            before.observe(ModelContext.willSave, context), after.observe(ModelContext.didSave, context),
        ]
        defer { observers.forEach(NotificationCenter.default.removeObserver) }
        context.insert(Employee(name: "Ada"))
        #expect(before.saved.isEmpty)
        try context.save()
        #expect(before.saved.map(\.hasInfo) == [false])
        #expect(after.saved.map(\.hasInfo) == [true])
        try context.save()
        #expect(after.saved.count == 1)
    }

    @Test func failedSaveTellsNothingAfterwards() throws {
        let office = Office(city: "Rome")
        let company = Company(code: "a")
        company.offices = [office]
        context.insert(company)
        try context.save()
        let after = Collected()
        let observer = after.observe(ModelContext.didSave, context)
        defer { NotificationCenter.default.removeObserver(observer) }
        context.delete(company)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
        #expect(after.saved.isEmpty)
    }

    @Test func pendingChangesAreProcessedWithoutThrowing() throws {
        let company = Company(code: "a")
        company.employees = [Employee(name: "Ada")]
        context.insert(company)
        try context.save()
        context.delete(company)
        #expect(context.deletedModelsArray.count == 1)
        context.processPendingChanges()
        #expect(context.deletedModelsArray.count == 2)
    }

    // MARK: Saving by itself

    @Test func contextsDoNotSaveByThemselves() throws {
        #expect(!context.autosaveEnabled)
        context.insert(Employee(name: "Ada"))
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Employee>()) == 0)
    }

    @Test @MainActor func mainContextSavesSoonAfterTheChange() async throws {
        let main = container.mainContext
        #expect(main.autosaveEnabled)
        #expect(main === container.mainContext)
        let collected = Collected()
        let (stream, signal) = AsyncStream<Void>.makeStream()
        let observers = [
            collected.observe(ModelContext.didSave, main),
            NotificationCenter.default.addObserver(forName: ModelContext.didSave, object: main, queue: nil) { _ in
                signal.finish()
            },
        ]
        defer { observers.forEach(NotificationCenter.default.removeObserver) }
        main.insert(Employee(name: "Ada"))
        main.insert(Employee(name: "Bob"))
        #expect(main.hasChanges)
        for await _ in stream {}
        #expect(!main.hasChanges)
        #expect(collected.saved.map { $0.inserted?.count } == [2])
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Employee>()) == 2)
    }

    @Test @MainActor func whatCannotBeSavedByItselfStaysPending() async throws {
        let company = Company(code: "a")
        company.offices = [Office(city: "Rome")]
        let main = container.mainContext
        main.autosaveEnabled = false
        main.insert(company)
        try main.save()
        main.autosaveEnabled = true
        main.delete(company)
        let deadline = ContinuousClock.now + .seconds(20)
        while main.autosaveError == nil, ContinuousClock.now < deadline { await Task.yield() }
        #expect(main.autosaveError as? SwiftDataError == .deleteDenied)
        #expect(main.deletedModelsArray.count == 1)
        #expect(throws: SwiftDataError.deleteDenied) { try main.save() }
        main.rollback()
        #expect(!main.hasChanges)
    }

    @Test func otherContextsSaveBeforeTheyFetch() throws {
        context.autosaveEnabled = true
        context.insert(Employee(name: "Ada"))
        #expect(context.hasChanges)
        #expect(try context.fetchCount(FetchDescriptor<Employee>()) == 1)
        #expect(!context.hasChanges)
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Employee>()) == 1)
    }
}
