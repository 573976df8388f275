import Dispatch
import Foundation
import MartletTestSupport
import SwiftData
import Synchronization
import Testing

/// Counts how many are in one place at once.
private final class Crowd: Sendable {
    private let counts = Mutex((inside: 0, most: 0))
    var most: Int { counts.withLock { $0.most } }

    func enter() {
        counts.withLock {
            $0.inside += 1
            $0.most = max($0.most, $0.inside)
        }
    }

    func leave() { counts.withLock { $0.inside -= 1 } }
}

@ModelActor
private actor Hirer {
    func hire(_ count: Int, prefix: String, _ crowd: Crowd) throws {
        crowd.enter()
        defer { crowd.leave() }
        _ = try hire(count, prefix: prefix)
    }

    func hire(_ count: Int, prefix: String) throws -> [PersistentIdentifier] {
        var hired: [Employee] = []
        for number in 0..<count {
            let employee = Employee(name: "\(prefix)\(number)")
            modelContext.insert(employee)
            hired.append(employee)
            if number % 10 == 9 { try modelContext.save() }
        }
        try modelContext.save()
        return hired.map(\.persistentModelID)
    }

    func rename(_ id: PersistentIdentifier, to name: String) throws -> Bool {
        guard let employee = self[id, as: Employee.self] else { return false }
        employee.name = name
        try modelContext.save()
        return true
    }

    func isBadge(_ id: PersistentIdentifier) -> Bool { self[id, as: Badge.self] != nil }

    func isOnItsQueue() -> Bool {
        (modelExecutor as? DefaultSerialModelExecutor)?.checkIsolated()
        return true
    }

    func insertWithoutSaving(_ name: String) {
        modelContext.autosaveEnabled = true
        modelContext.insert(Employee(name: name))
    }
}

@ModelActor
private actor Named {
    let name: String

    init(modelContainer: ModelContainer, name: String) {
        self.modelContainer = modelContainer
        modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(modelContainer))
        self.name = name
    }

    func author() throws {
        modelContext.author = name
        modelContext.insert(Badge(number: 1))
        try modelContext.save()
    }
}

/// Changes a model that may not be saved as it is.
@ModelActor
private actor Corrector {
    private var everything: Everything?
    private var crew: Crew?
    private var observer: (any NSObjectProtocol)?

    final class Attempts: Sendable {
        let count = Mutex(0)
    }

    var saveHasFailed: Bool { modelContext.autosaveError != nil }

    func start() { modelContext.autosaveEnabled = true }

    func measure(_ value: Double) {
        if let everything {
            everything.double = value
        } else {
            let new = Everything()
            new.double = value
            modelContext.insert(new)
            everything = new
        }
    }

    /// Changes the model whenever it is about to be saved, as a program does that keeps the time of the last change.
    func touchBeforeSaving(_ attempts: Attempts) {
        nonisolated(unsafe) let everything = everything
        observer = NotificationCenter.default.addObserver(
            forName: ModelContext.willSave, object: modelContext, queue: nil
        ) { _ in
            attempts.count.withLock { $0 += 1 }
            everything?.int += 1
        }
    }

    func stopObserving() { if let observer { NotificationCenter.default.removeObserver(observer) } }

    /// A crew may have two sailors.
    func hire(_ count: Int) {
        let new = Crew()
        new.sailors = (0..<count).map { _ in Sailor() }
        modelContext.insert(new)
        crew = new
    }

    func keep(_ count: Int) {
        if let crew { crew.sailors = Array(crew.sailors.prefix(count)) }
    }
}

struct ModelActorTests {
    private func names(_ container: ModelContainer) throws -> [String] {
        try ModelContext(container).fetch(FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.name)])).map(\.name)
    }

    @Test func actorSavesWithAContextOfItsOwn() async throws {
        let container = try companyContainer()
        let hirer = Hirer(modelContainer: container)
        #expect(hirer.modelContainer == container)
        let ids = try await hirer.hire(3, prefix: "a")
        #expect(try names(container) == ["a0", "a1", "a2"])
        #expect(Set(ids).count == 3)
        #expect(await hirer.isOnItsQueue())
    }

    @Test func subscriptFindsWhatIsThereAndOfItsType() async throws {
        let container = try companyContainer()
        let hirer = Hirer(modelContainer: container)
        let id = try await hirer.hire(1, prefix: "a")[0]
        let other = Hirer(modelContainer: container)
        #expect(try await other.rename(id, to: "Ada"))
        #expect(try names(container) == ["Ada"])
        #expect(await !other.isBadge(id))
        let absent = try PersistentIdentifier.identifier(
            for: id.storeIdentifier ?? "", entityName: "Employee", primaryKey: 99)
        #expect(try await !other.rename(absent, to: "x"))
    }

    @Test func manyActorsWriteAtOnceAndLoseNothing() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "models-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let container = try companyContainer(.init(url: folder.appending(path: "c.store")))
        let all = try await withThrowingTaskGroup(of: [PersistentIdentifier].self) { group in
            for number in 0..<8 {
                group.addTask { try await Hirer(modelContainer: container).hire(50, prefix: "\(number)-") }
            }
            return try await group.reduce(into: Set<PersistentIdentifier>()) { $0.formUnion($1) }
        }
        #expect(all.count == 400)
        let context = ModelContext(container)
        #expect(try context.fetchCount(FetchDescriptor<Employee>()) == 400)
        let transactions = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        #expect(transactions.count == 40)
        #expect(transactions.map(\.changes.count).reduce(0, +) == 400)
    }

    @Test func oneActorsJobsRunOneAfterTheOther() async throws {
        let container = try companyContainer()
        let hirer = Hirer(modelContainer: container)
        let crowd = Crowd()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { try await hirer.hire(5, prefix: "\(number)-", crowd) } }
            try await group.waitForAll()
        }
        #expect(crowd.most == 1)
        #expect(try names(container).count == 100)
    }

    @Test func actorMayHaveAnInitializerAndPropertiesOfItsOwn() async throws {
        let container = try companyContainer()
        let named = Named(modelContainer: container, name: "importer")
        try await named.author()
        let last = try ModelContext(container).fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last
        #expect(last?.author == "importer")
    }

    @Test func actorsContextSavesByItselfWhereAsked() async throws {
        let container = try companyContainer()
        let hirer = Hirer(modelContainer: container)
        await hirer.insertWithoutSaving("Ada")
        // The save is queued behind the job that made the change, and before the next one.
        #expect(await hirer.isOnItsQueue())
        #expect(try names(container) == ["Ada"])
    }

    @Test func aCorrectedValueIsSavedByItself() async throws {
        let container = try companyContainer()
        let corrector = Corrector(modelContainer: container)
        await corrector.start()
        func stored() throws -> [Double] {
            try ModelContext(container).fetch(FetchDescriptor<Everything>()).map(\.double)
        }
        // First a model that was never saved, then a stored one.
        for value in [5.0, 6.0] {
            let before = try stored()
            await corrector.measure(.nan)
            try await eventually("a failed save") { await corrector.saveHasFailed }
            #expect(try stored() == before)
            await corrector.measure(value)
            try await eventually("a save") { await !corrector.saveHasFailed }
            #expect(try stored() == [value])
        }
    }

    /// The handler's change is part of the save that fails.
    @Test func aFailedSaveIsNotTriedAgainBecauseOfItsHandlers() async throws {
        let corrector = Corrector(modelContainer: try companyContainer())
        await corrector.start()
        let attempts = Corrector.Attempts()
        await corrector.measure(.nan)
        try await eventually("a failed save") { await corrector.saveHasFailed }
        await corrector.touchBeforeSaving(attempts)
        await corrector.measure(.nan)
        try await eventually("a save") { attempts.count.withLock { $0 } > 0 }
        for _ in 1...100 { #expect(await corrector.saveHasFailed) }
        #expect(attempts.count.withLock { $0 } == 1)
        await corrector.stopObserving()
    }

    @Test func aCorrectedListIsSavedByItself() async throws {
        let container = try ModelContainer(
            for: Crew.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let corrector = Corrector(modelContainer: container)
        await corrector.start()
        await corrector.hire(3)
        try await eventually("a failed save") { await corrector.saveHasFailed }
        await corrector.keep(1)
        try await eventually("a save") { await !corrector.saveHasFailed }
        let crews = try ModelContext(container).fetch(FetchDescriptor<Crew>())
        #expect(crews.map(\.sailors.count) == [1])
    }
}
