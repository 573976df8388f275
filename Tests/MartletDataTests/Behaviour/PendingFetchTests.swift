import Foundation
import SwiftData
import Testing

/// The results of fetches with unsaved changes, in every state of a model.
struct PendingFetchTests {
    let container: ModelContainer
    let context: ModelContext
    let stored: [Sample]

    init() throws {
        container = try sampleContainer()
        context = ModelContext(container)
        stored = (1...4).map { Sample($0, text: "stored") }
        for sample in stored { context.insert(sample) }
        try context.save()
    }

    private func numbers(_ descriptor: FetchDescriptor<Sample> = .init(sortBy: [SortDescriptor(\.number)])) throws
        -> [Int]
    {
        let models = try context.fetch(descriptor)
        #expect(try context.fetchCount(descriptor) == models.count)
        #expect(try context.fetchIdentifiers(descriptor) == models.map(\.persistentModelID))
        return models.map(\.number)
    }

    private func numbers(_ predicate: Predicate<Sample>) throws -> [Int] {
        try numbers(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.number)]))
    }

    @Test func fetchesFindAndSortInsertedModels() throws {
        context.insert(Sample(0))
        context.insert(Sample(3, text: "new"))
        #expect(try numbers() == [0, 1, 2, 3, 3, 4])
        #expect(try numbers(#Predicate { $0.text == "new" }) == [3])
    }

    @Test func fetchesFindChangedModelsByTheirNewValues() throws {
        stored[0].number = 9
        #expect(try numbers() == [2, 3, 4, 9])
        #expect(try numbers(#Predicate { $0.number == 1 }) == [])
        #expect(try numbers(#Predicate { $0.number == 9 }) == [9])
    }

    @Test func fetchesOmitDeletedModels() throws {
        context.delete(stored[1])
        #expect(try numbers() == [1, 3, 4])
        #expect(try numbers(#Predicate { $0.number <= 2 }) == [1])
    }

    @Test func fetchesOmitAModelInsertedAndDeletedAgain() throws {
        let new = context.inserting(Sample(9))
        #expect(try numbers() == [1, 2, 3, 4, 9])
        context.delete(new)
        #expect(try numbers() == [1, 2, 3, 4])
        #expect(!context.hasChanges)
    }

    @Test func fetchesFindAModelWhoseDeletionWasRolledBack() throws {
        context.delete(stored[1])
        _ = try numbers()
        context.rollback()
        #expect(try numbers() == [1, 2, 3, 4])
    }

    @Test func fetchesFindAModelDeletedAndInsertedAgain() throws {
        context.delete(stored[1])
        _ = try numbers()
        context.insert(stored[1])
        #expect(try numbers() == [1, 2, 3, 4])
        try context.save()
        #expect(try container.reader().fetchCount(FetchDescriptor<Sample>()) == 4)
    }

    @Test func fetchesOmitAModelChangedAndDeleted() throws {
        stored[0].number = 9
        context.delete(stored[0])
        #expect(try numbers() == [2, 3, 4])
        context.rollback()
        #expect(try numbers() == [1, 2, 3, 4])
    }

    @Test func limitAndOffsetCountUnsavedModels() throws {
        context.insert(Sample(0))
        context.delete(stored[1])
        stored[3].number = -1
        var descriptor = FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)])
        descriptor.fetchLimit = 2
        #expect(try numbers(descriptor) == [-1, 0])
        descriptor.fetchOffset = 1
        #expect(try numbers(descriptor) == [0, 1])
        descriptor.fetchOffset = 3
        #expect(try numbers(descriptor) == [3])
    }

    @Test func fetchesSearchChangedRelationships() throws {
        let owner = Owner("a")
        stored[0].owner = owner
        #expect(try numbers(#Predicate { $0.owner?.name == "a" }) == [1])
        #expect(try numbers(#Predicate { $0.owner == nil }) == [2, 3, 4])
        try context.save()
        owner.name = "b"
        #expect(try numbers(#Predicate { $0.owner?.name == "a" }) == [])
        stored[1].owner = owner
        #expect(try numbers(#Predicate { $0.owner?.samples.count == 2 }) == [1, 2])
        context.delete(owner)
        #expect(try numbers(#Predicate { $0.owner != nil }) == [])
    }

    @Test func fetchesSearchChangedManyToManyLinks() throws {
        let tag = Tag("x")
        stored[0].tags = [tag]
        #expect(try numbers(#Predicate { $0.tags.contains { $0.name == "x" } }) == [1])
        try context.save()
        tag.samples = [stored[1], stored[2]]
        #expect(try numbers(#Predicate { $0.tags.contains { $0.name == "x" } }) == [2, 3])
        context.rollback()
        #expect(try numbers(#Predicate { $0.tags.contains { $0.name == "x" } }) == [1])
    }

    @Test func fetchesApplyCascadesFirst() throws {
        let context = ModelContext(try companyContainer())
        let company = context.inserting(Company(code: "a"))
        company.employees = [Employee(name: "Ada")]
        try context.save()
        context.delete(company)
        #expect(try context.fetchCount(FetchDescriptor<Employee>()) == 0)
        context.rollback()
        #expect(try context.fetchCount(FetchDescriptor<Employee>()) == 1)
        #expect(company.employees.map(\.name) == ["Ada"])
    }

    @Test func fetchesWithoutPendingChangesSearchTheSavedState() throws {
        context.insert(Sample(0))
        stored[0].number = 9
        context.delete(stored[1])
        var descriptor = FetchDescriptor<Sample>(
            predicate: #Predicate { $0.number < 9 }, sortBy: [SortDescriptor(\.number)])
        descriptor.includePendingChanges = false
        #expect(try context.fetchCount(descriptor) == 4)
        // The objects are the context's own, with their pending changes.
        #expect(try context.fetch(descriptor).map(\.number) == [9, 2, 3, 4])
        #expect(try context.fetchIdentifiers(descriptor) == stored.map(\.persistentModelID))
        #expect(context.insertedModelsArray.count == 1)
        #expect(context.deletedModelsArray.count == 1)
    }

    @Test func prefetchingIncludesPendingChanges() throws {
        let owner = context.inserting(Owner("a"))
        owner.samples = [stored[0], stored[1]]
        try context.save()
        let other = ModelContext(container)
        let samples = try other.fetch(FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)]))
        samples[0].owner = nil
        other.insert(Sample(7, owner: samples[1].owner))
        var descriptor = FetchDescriptor<Owner>()
        descriptor.relationshipKeyPathsForPrefetching = [\.samples]
        let found = try #require(try other.fetch(descriptor).first)
        #expect(found.samples.map(\.number).sorted() == [2, 7])
    }

    @Test func aFetchWithUnsavedChangesRefreshesUnchangedModels() throws {
        let other = container.reader()
        let theirs = try other.fetch(FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)]))
        stored[0].text = "mine"
        theirs[0].text = "theirs"
        theirs[1].number = 7
        try other.save()
        #expect(try numbers() == [1, 3, 4, 7])
        #expect(stored[0].text == "mine" && stored[1].number == 7)
        stored[1].number += 1
        try context.save()
        #expect(try container.reader().all(Sample.self).map(\.number) == [1, 8, 3, 4])
    }

    /// SQLite has set the reference to NULL while the fetch was running.
    @Test func aRollbackRestoresReferencesOfModelsThatWereFetchedBeforeIt() throws {
        let container = try ModelContainer(
            for: Vehicle.self, Garage.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let garage = Garage("a")
        garage.best = Vehicle("sledge", wheels: 0)
        let (first, second) = (ModelContext(container), ModelContext(container))
        first.insert(garage)
        try first.save()
        second.delete(try #require(try second.all(Vehicle.self).first))
        let found = try #require(try second.all(Garage.self).first)
        second.rollback()
        #expect(found.best?.name == "sledge")
        #expect(found.modelContext === second)
    }

    @Test func fetchingSavesNothingAndLeavesNoHistory() throws {
        let before = try context.history().count
        let new = context.inserting(Sample(0))
        let identifier = new.persistentModelID
        for _ in 0..<5 { _ = try numbers() }
        #expect(new.persistentModelID == identifier)
        #expect(context.hasChanges)
        #expect(try container.reader().fetchCount(FetchDescriptor<Sample>()) == 4)
        #expect(try context.history().count == before)
    }

    @Test func fetchesFindAnUnsavedModelByItsTemporaryIdentifier() throws {
        let new = context.inserting(Sample(7))
        let owner = context.inserting(Owner("a"))
        new.owner = owner
        let (id, ownerID) = (new.persistentModelID, owner.persistentModelID)
        #expect(try numbers(#Predicate { $0.persistentModelID == id }) == [7])
        #expect(try numbers(#Predicate { $0.owner?.persistentModelID == ownerID }) == [7])
        let ids = [id, stored[0].persistentModelID]
        #expect(try numbers(#Predicate { ids.contains($0.persistentModelID) }) == [1, 7])
    }

    @Test func enumerationIncludesUnsavedChanges() throws {
        context.insert(Sample(0))
        context.delete(stored[3])
        var found: [Int] = []
        try context.enumerate(
            FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)]), batchSize: 2, allowEscapingMutations: true
        ) { found.append($0.number) }
        #expect(found == [0, 1, 2, 3])
    }

    @Test func aDeletionWithAPredicateIncludesUnsavedChanges() throws {
        context.insert(Sample(8, text: "new"))
        stored[0].text = "changed"
        try context.delete(model: Sample.self, where: #Predicate { $0.text == "new" || $0.text == "stored" })
        #expect(try numbers() == [1])
        try context.save()
        #expect(try container.reader().all(Sample.self).map(\.text) == ["changed"])
    }
}
