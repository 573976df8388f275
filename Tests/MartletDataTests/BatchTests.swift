import Foundation
import SwiftData
import Testing

struct BatchTests {
    private let container: ModelContainer
    private let context: ModelContext

    init() throws {
        container = try companyContainer()
        let filling = ModelContext(container)
        for number in 0..<25 { filling.insert(Employee(name: "e\(number)", age: number)) }
        try filling.save()
        context = ModelContext(container)
    }

    private let byAge = FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.age)])

    @Test func theCollectionEqualsTheFetch() throws {
        let found = try context.fetch(byAge, batchSize: 10)
        #expect(found.count == 25)
        #expect(found.map(\.age) == Array(0..<25))
        #expect(found[24].name == "e24")
        #expect(found.reversed().map(\.age) == Array((0..<25).reversed()))
        #expect(found.last === found[24])
        #expect(try context.fetch(byAge, batchSize: 0).map(\.age) == Array(0..<25))
    }

    @Test func theCollectionReadsABatchOnAccess() throws {
        let found = try context.fetch(byAge, batchSize: 10)
        let ids = try context.fetchIdentifiers(byAge)
        func isRead(_ position: Int) -> Bool {
            (context.registeredModel(for: ids[position]) as Employee?) != nil
        }
        #expect(!isRead(0))
        _ = found[12]
        #expect(!isRead(9))
        #expect(isRead(10) && isRead(19))
        #expect(!isRead(20))
        _ = (found[0], found[20])
        #expect(isRead(0) && isRead(24))
        // Two batches are in memory at a time.
        #expect(!isRead(10))
    }

    @Test func identifiersAreFetchedInBatches() throws {
        let found = try context.fetchIdentifiers(byAge, batchSize: 7)
        #expect(Array(found) == (try context.fetchIdentifiers(byAge)))
    }

    @Test func theCollectionContainsUnsavedModels() throws {
        let new = Employee(name: "new", age: 5)
        context.insert(new)
        let found = try context.fetch(byAge, batchSize: 4)
        #expect(found.count == 26)
        #expect(found.contains { $0 === new })
        #expect(try context.fetchIdentifiers(byAge, batchSize: 4).contains(new.persistentModelID))
    }

    @Test func aModelDeletedAfterTheFetchStaysAnElement() throws {
        let found = try context.fetch(byAge, batchSize: 10)
        let other = ModelContext(container)
        try other.delete(model: Employee.self, where: #Predicate { $0.age == 3 })
        try other.save()
        #expect(found.count == 25)
        #expect(found[3].isDeleted)
        #expect(found[4].name == "e4")
    }

    @Test func prefetchingWorksInBatches() throws {
        let filling = ModelContext(container)
        let company = Company(code: "c")
        filling.insert(company)
        for employee in try filling.fetch(byAge) { employee.company = company }
        try filling.save()
        var descriptor = byAge
        descriptor.relationshipKeyPathsForPrefetching = [\.company]
        let found = try context.fetch(descriptor, batchSize: 10)
        #expect(found[3].company?.code == "c")
        #expect(found[3].company === found[13].company)
    }

    @Test func aCollectionWithoutMatchesIsEmpty() throws {
        let none = FetchDescriptor<Employee>(predicate: #Predicate { $0.age > 100 })
        #expect(try context.fetch(none, batchSize: 5).isEmpty)
        #expect(try context.fetchIdentifiers(none, batchSize: 5).isEmpty)
    }

    // MARK: Enumerating

    @Test(arguments: [1, 10, 5_000, 0]) func enumerationFollowsTheOrder(batchSize: Int) throws {
        var ages: [Int] = []
        try context.enumerate(byAge, batchSize: batchSize) { ages.append($0.age) }
        #expect(ages == Array(0..<25))
    }

    @Test func enumerationRefusesEscapingChangesUnlessAllowed() throws {
        #expect(throws: SwiftDataError.mutatedWhileEnumerating) {
            try context.enumerate(byAge, batchSize: 10) { $0.age += 100 }
        }
        #expect(context.changedModelsArray.count == 10)
        context.rollback()
        try context.enumerate(byAge, batchSize: 10, allowEscapingMutations: true) { $0.age += 100 }
        #expect(context.changedModelsArray.count == 25)
    }

    @Test func enumerationAllowsChangesThatTheClosureSaves() throws {
        try context.enumerate(byAge, batchSize: 10) { employee in
            employee.nickname = "x"
            try context.save()
        }
        let named = FetchDescriptor<Employee>(predicate: #Predicate { $0.nickname == "x" })
        #expect(try context.fetchCount(named) == 25)
    }

    @Test func enumerationAllowsChangesFromBefore() throws {
        context.insert(Employee(name: "new", age: 99))
        var count = 0
        try context.enumerate(byAge, batchSize: 10) { _ in count += 1 }
        #expect(count == 26)
    }

    @Test func enumerationStopsAtTheFirstError() throws {
        struct Enough: Error {}
        var count = 0
        #expect(throws: Enough.self) {
            try context.enumerate(byAge, batchSize: 10) { _ in
                count += 1
                if count == 12 { throw Enough() }
            }
        }
        #expect(count == 12)
    }

    // MARK: Partial fetches

    @Test func unlistedAttributesAreReadWhenTouched() throws {
        var descriptor = byAge
        descriptor.propertiesToFetch = [\.name]
        let sql = try context.sql(for: descriptor).sql
        let columns = sql.prefix(while: { $0 != "F" })
        #expect(columns.contains("\"name\""))
        #expect(!columns.contains("nickname"))
        let found = try context.fetch(descriptor)
        #expect(found.map(\.name) == (0..<25).map { "e\($0)" })
        #expect(found[7].age == 7)
        #expect(found[7].nickname == nil)
    }

    @Test func unlistedAttributesAreChangedAndSavedLikeOthers() throws {
        var descriptor = byAge
        descriptor.propertiesToFetch = [\.name]
        let found = try context.fetch(descriptor)
        found[3].age = 300
        found[4].name = "four"
        #expect(found[3].hasChanges)
        try context.save()
        let again = try ModelContext(container).fetch(byAge)
        #expect(again.last?.age == 300 && again.last?.name == "e3")
        #expect(again.first { $0.name == "four" }?.age == 4)
    }

    @Test func rollbackRestoresUnlistedAttributes() throws {
        var descriptor = byAge
        descriptor.propertiesToFetch = [\.name]
        let found = try context.fetch(descriptor)
        found[3].age = 300
        context.rollback()
        #expect(found[3].age == 3)
    }

    @Test func aLaterFetchReadsTheOtherAttributes() throws {
        var descriptor = byAge
        descriptor.propertiesToFetch = [\.name]
        let some = try context.fetch(descriptor)
        let other = ModelContext(container)
        let renamed = try #require(try other.fetch(byAge).first)
        renamed.nickname = "first"
        renamed.name = "E0"
        try other.save()
        let all = try context.fetch(byAge)
        #expect(all[0] === some[0])
        #expect(some[0].nickname == "first")
        #expect(try context.fetch(descriptor).first?.name == "E0")
    }

    @Test func anUnlistedAttributeOfADeletedRowIsEmpty() throws {
        var descriptor = byAge
        descriptor.propertiesToFetch = [\.name]
        let found = try context.fetch(descriptor)
        let other = ModelContext(container)
        try other.delete(model: Employee.self)
        try other.save()
        #expect(found[5].age == 0)
        #expect(found[5].name == "e5")
    }

    @Test func relationshipsAreAvailableWithoutListing() throws {
        let filling = ModelContext(container)
        let employee = try #require(try filling.fetch(byAge).first)
        employee.company = Company(code: "c", title: "T")
        try filling.save()
        var descriptor = byAge
        descriptor.propertiesToFetch = [\.name]
        #expect(try context.fetch(descriptor).first?.company?.title == "T")
    }

    @Test func listingATransientPropertyIsRefused() throws {
        var descriptor = byAge
        descriptor.propertiesToFetch = [\.note]
        #expect(throws: SwiftDataError.unsupportedKeyPath) { try context.fetch(descriptor) }
    }
}
