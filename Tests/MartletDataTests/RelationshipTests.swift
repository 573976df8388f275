import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

struct RelationshipTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
    }

    private func only<T: PersistentModel>(_ type: T.Type, in context: ModelContext) throws -> T {
        try #require(try context.fetch(FetchDescriptor<T>()).first)
    }

    @Test func inverseOfOneToManyFollowsBothWays() throws {
        let (a, b) = (Company(code: "a"), Company(code: "b"))
        let ada = Employee(name: "Ada")
        context.insert(a)
        context.insert(b)
        a.employees.append(ada)
        #expect(ada.company === a)
        #expect(ada.modelContext === context)
        ada.company = b
        #expect(a.employees.isEmpty)
        #expect(b.employees == [ada])
        b.employees = []
        #expect(ada.company == nil)
    }

    @Test func savedRelationshipsFaultIn() throws {
        let company = Company(code: "a")
        context.insert(company)
        company.employees = [Employee(name: "Ada"), Employee(name: "Ben")]
        try context.save()
        let other = ModelContext(container)
        let found = try only(Company.self, in: other)
        #expect(found.employees.map(\.name) == ["Ada", "Ben"])
        #expect(found.employees.first?.company === found)
    }

    @Test func faultCountsUnsavedChanges() throws {
        let (a, b) = (Company(code: "a"), Company(code: "b"))
        context.insert(a)
        context.insert(b)
        a.employees = [Employee(name: "Ada"), Employee(name: "Ben")]
        try context.save()
        let other = ModelContext(container)
        let ada = try #require(
            try other.fetch(FetchDescriptor<Employee>(predicate: #Predicate { $0.name == "Ada" })).first)
        let companies = try other.fetch(FetchDescriptor<Company>(sortBy: [SortDescriptor(\.code)]))
        ada.company = companies[1]
        #expect(companies[0].employees.map(\.name) == ["Ben"])
        #expect(companies[1].employees.map(\.name) == ["Ada"])
    }

    @Test func oneToOneHasOnePartner() throws {
        let (ada, ben) = (Employee(name: "Ada"), Employee(name: "Ben"))
        let badge = Badge(number: 1)
        context.insert(ada)
        context.insert(ben)
        ada.badge = badge
        #expect(badge.holder === ada)
        ben.badge = badge
        #expect(ada.badge == nil)
        #expect(badge.holder === ben)
        try context.save()
        let other = ModelContext(container)
        #expect(try only(Badge.self, in: other).holder?.name == "Ben")
        let employees = try other.fetch(FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.name)]))
        #expect(employees.map { $0.badge?.number } == [nil, 1])
    }

    @Test func manyToManyIsKeptInAJoinTable() throws {
        let (ada, ben) = (Employee(name: "Ada"), Employee(name: "Ben"))
        let (x, y) = (Project(title: "x"), Project(title: "y"))
        for model in [ada, ben] { context.insert(model) }
        for model in [x, y] { context.insert(model) }
        x.members = [ada, ben]
        ada.projects.append(y)
        #expect(ada.projects == [x, y])
        #expect(y.members == [ada])
        try context.save()
        let other = ModelContext(container)
        let projects = try other.fetch(FetchDescriptor<Project>(sortBy: [SortDescriptor(\.title)]))
        #expect(projects.map { $0.members.map(\.name) } == [["Ada", "Ben"], ["Ada"]])
        projects[0].members.removeFirst()
        try other.save()
        let third = ModelContext(container)
        let employees = try third.fetch(FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.name)]))
        #expect(employees.map { $0.projects.map(\.title) } == [["y"], ["x"]])
    }

    @Test func cascadeDeletesAndNullifyLetsGo() throws {
        let company = Company(code: "a")
        context.insert(company)
        let ada = Employee(name: "Ada")
        company.employees = [ada]
        let badge = Badge(number: 1)
        ada.badge = badge
        try context.save()
        let other = ModelContext(container)
        other.delete(try only(Company.self, in: other))
        try other.save()
        #expect(try other.fetchCount(FetchDescriptor<Employee>()) == 0)
        #expect(try only(Badge.self, in: other).holder == nil)
    }

    private func execute(_ sql: String) throws { try container.store.write { try $0.execute(sql: sql) } }

    /// Saves a company with two employees and an office, in which another program then writes a value that no property
    /// can have.
    private func saveCompany(_ damage: String) throws {
        let company = Company(code: "a")
        context.insert(company)
        company.employees = [Employee(name: "Ada"), Employee(name: "Ben")]
        company.offices = [Office(city: "Rome")]
        try context.save()
        try execute(damage)
    }

    @Test func anUnreadableRowIsMissingFromAListUntilItIsCorrected() throws {
        try saveCompany("UPDATE Employee SET age = 'old' WHERE name = 'Ben'")
        let other = ModelContext(container)
        let company = try only(Company.self, in: other)
        #expect(company.employees.map(\.name) == ["Ada"])
        try execute("UPDATE Employee SET age = 40 WHERE name = 'Ben'")
        #expect(company.employees.map(\.name) == ["Ada", "Ben"])
        #expect(company.modelContext === other)
    }

    @Test func anUnreadableTargetIsMissingUntilItIsCorrected() throws {
        try saveCompany("UPDATE Company SET title = x'00'")
        let other = ModelContext(container)
        let ada = try #require(
            try other.fetch(FetchDescriptor<Employee>(predicate: #Predicate { $0.name == "Ada" })).first)
        #expect(ada.company == nil)
        try execute("UPDATE Company SET title = 'Acme'")
        #expect(ada.company?.title == "Acme")
        #expect(ada.modelContext === other)
    }

    /// Cascade would leave its row behind, and deny would overlook it.
    @Test(arguments: ["UPDATE Employee SET age = 'old' WHERE name = 'Ben'", "UPDATE Office SET city = x'00'"])
    func anUnreadableRowStopsADeletionThatConcernsIt(damage: String) throws {
        try saveCompany(damage)
        try execute("UPDATE Office SET company = NULL WHERE typeof(city) = 'text'")
        let other = ModelContext(container)
        let company = try only(Company.self, in: other)
        other.delete(company)
        #expect(throws: SwiftDataError.corruptValue) { try other.save() }
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Company>()) == 1)
        try execute("UPDATE Employee SET age = 40")
        try execute("DELETE FROM Office")
        try other.save()
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Company>()) == 0)
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Employee>()) == 0)
    }

    @Test func denyRefusesAndSaysWhy() throws {
        let company = Company(code: "a")
        context.insert(company)
        company.offices = [Office(city: "Rome")]
        try context.save()
        context.delete(company)
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error == .deleteDenied)
        #expect(error?.message == "A Company can't be deleted while it has offices.")
        context.rollback()
        for office in company.offices { context.delete(office) }
        context.delete(company)
        try context.save()
        #expect(try context.fetchCount(FetchDescriptor<Company>()) == 0)
    }

    @Test func toManyWithoutInverseIsKept() throws {
        let container = try tripContainer()
        let context = ModelContext(container)
        let trip = Trip(name: "Alps", destination: "Tirol")
        trip.bucketList = [BucketListItem(title: "Ski"), BucketListItem(title: "Swim")]
        context.insert(trip)
        try context.save()
        let other = ModelContext(container)
        let found = try only(Trip.self, in: other)
        #expect(found.bucketList.map(\.title) == ["Ski", "Swim"])
        found.bucketList.removeFirst()
        try other.save()
        let third = ModelContext(container)
        #expect(try only(Trip.self, in: third).bucketList.map(\.title) == ["Swim"])
        #expect(try other.fetchCount(FetchDescriptor<BucketListItem>()) == 2)
    }

    @Test func deletedTargetIsGoneFromItsOwner() throws {
        let container = try tripContainer()
        let context = ModelContext(container)
        let trip = Trip(name: "Alps", destination: "Tirol")
        let hut = LivingAccommodation(address: "Hut")
        trip.livingAccommodation = hut
        context.insert(trip)
        try context.save()
        context.delete(hut)
        try context.save()
        #expect(trip.livingAccommodation == nil)
        let other = ModelContext(container)
        let found = try only(Trip.self, in: other)
        #expect(found.livingAccommodation == nil)
        #expect(found.modelContext === other)
    }

    @Test func newModelsReferToEachOtherInACircle() throws {
        let ada = Employee(name: "Ada")
        let badge = Badge(number: 1)
        badge.holder = ada
        let project = Project(title: "x")
        project.members = [ada]
        context.insert(project)
        context.insert(badge)
        try context.save()
        let other = ModelContext(container)
        let found = try only(Employee.self, in: other)
        #expect(found.badge?.number == 1)
        #expect(found.projects.map(\.title) == ["x"])
    }
}
