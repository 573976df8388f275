import Foundation
import MartletStore
import SwiftData
import Testing

/// What user code may ask of schemas, containers and identifiers.
struct ParityTests {
    private let container: ModelContainer
    private let context: ModelContext

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
    }

    // MARK: Identifiers

    @Test func unknownIdentifierGivesAnUnsavedModelThatNamesIt() throws {
        let ada = Employee(name: "Ada", age: 36)
        context.insert(ada)
        try context.save()
        let id = ada.persistentModelID
        let other = ModelContext(container)
        try other.delete(model: Employee.self)
        try other.save()
        let fresh = ModelContext(container)
        #expect(fresh.existingModel(for: id) == nil)
        let model = fresh.model(for: id)
        #expect(model.persistentModelID == id)
        let employee = try #require(model as? Employee)
        #expect(employee.isDeleted)
        #expect(employee.modelContext == nil)
        #expect(employee.name == "")
        #expect(employee.age == 0)
        #expect(employee.nickname == nil)
        #expect(employee.company == nil)
        #expect(employee.projects.isEmpty)
        #expect(!fresh.hasChanges)
    }

    @Test func absentModelHasItsDefaults() throws {
        let id = try PersistentIdentifier.identifier(
            for: container.storeIdentifierForTests(context), entityName: "Everything", primaryKey: 12_345)
        let model = try #require(context.model(for: id) as? Everything)
        #expect(model.colour == .red)
        #expect(model.point == Point(x: 0, y: 0))
        #expect(model.words == [])
        #expect(model.decimal == 0)
        #expect(model.date == Date(timeIntervalSince1970: 0))
    }

    @Test func identifierOfAnotherSchemaGivesAModelOfNoKnownType() throws {
        let id = try PersistentIdentifier.identifier(for: "elsewhere", entityName: "Spaceship", primaryKey: "ncc")
        let model = context.model(for: id)
        #expect(model.persistentModelID == id)
        #expect(model as? Employee == nil)
        #expect(model.isDeleted)
    }

    @Test func madeIdentifierIsTheModelsOwn() throws {
        let ada = Employee(name: "Ada")
        context.insert(ada)
        try context.save()
        let id = ada.persistentModelID
        let row = try #require(Int(id.description.split(separator: "/").last ?? ""))
        let made = try PersistentIdentifier.identifier(
            for: try #require(id.storeIdentifier), entityName: id.entityName, primaryKey: row)
        #expect(made == id)
        #expect(context.model(for: made) as? Employee === ada)
        let decoded = try JSONDecoder().decode(PersistentIdentifier.self, from: try JSONEncoder().encode(id))
        #expect(decoded == id)
    }

    @Test func identifiersOfOtherStoresAreOrderedAndCoded() throws {
        func make(_ key: String) throws -> PersistentIdentifier {
            try .identifier(for: "s", entityName: "E", primaryKey: key)
        }
        let (a, b) = (try make("a"), try make("b"))
        #expect(a < b && !(b < a) && a != b)
        #expect(try JSONDecoder().decode(PersistentIdentifier.self, from: try JSONEncoder().encode(a)) == a)
    }

    // MARK: Schema

    @Test func schemaTellsItsEntities() throws {
        let schema = Schema([Company.self, Project.self])
        #expect(schema.entities.map(\.name) == ["Badge", "Company", "Employee", "Office", "Project"])
        let company = try #require(schema.entity(for: Company.self))
        #expect(company == schema.entitiesByName["Company"])
        #expect(company.attributesByName.keys.sorted() == ["code", "title"])
        let code = try #require(company.attributesByName["code"])
        #expect(code.isUnique && code.isAttribute && !code.isRelationship && !code.isOptional)
        #expect(code.options == [.unique, .preserveValueOnDeletion])
        let isText = code.valueType == String.self
        #expect(isText)
        #expect(company.uniquenessConstraints == [["code"]])
        #expect(company.properties.map(\.name) == ["code", "title", "employees", "offices"])
        #expect(schema.encodingVersion == Schema.Version(1, 0, 0))
    }

    @Test func schemaTellsRelationships() throws {
        let schema = Schema([Company.self, Project.self])
        let employees = try #require(schema.entity(for: Company.self)?.relationshipsByName["employees"])
        #expect(employees.destination == "Employee")
        #expect(employees.inverseName == "company")
        #expect(employees.inverseKeyPath == \Employee.company as AnyKeyPath)
        #expect(employees.keypath == \Company.employees as AnyKeyPath)
        #expect(!employees.isToOneRelationship)
        #expect(employees.deleteRule == .cascade)
        let employee = try #require(schema.entity(for: Employee.self))
        #expect(employee.relationshipsByName["company"]?.isToOneRelationship == true)
        #expect(employee.relationshipsByName["company"]?.isOptional == true)
        #expect(employee.attributesByName["nickname"]?.isOptional == true)
        #expect(employee.attributesByName["note"] == nil)
    }

    @Test func schemaTellsInheritanceAndIndices() throws {
        let schema = Schema([Trip.self, BusinessTrip.self, PersonalTrip.self])
        let trip = try #require(schema.entity(for: Trip.self))
        #expect(trip.subentities.map(\.name).sorted() == ["BusinessTrip", "PersonalTrip"])
        #expect(trip.superentity == nil)
        #expect(trip.indices.contains(["name", "startDate", "endDate"]))
        #expect(trip.uniquenessConstraints == [["name", "startDate", "endDate"]])
        let business = try #require(schema.entity(for: BusinessTrip.self))
        #expect(business.superentityName == "Trip")
        #expect(business.superentity == trip)
        #expect(business.attributesByName["perdiem"] != nil && business.attributesByName["name"] != nil)
        #expect(business.inheritedPropertiesByName["perdiem"] == nil)
        #expect(business.inheritedPropertiesByName["name"] != nil)
    }

    @Test func schemasOfTheSameModelsAreEqual() {
        #expect(Schema([Company.self]) == Schema([Company.self]))
        #expect(Schema([Company.self]) != Schema([Trip.self]))
        #expect(Schema([Company.self]) != Schema([Company.self], version: Schema.Version(2, 0, 0)))
        #expect(Set([Schema([Company.self]), Schema([Company.self])]).count == 1)
    }

    // MARK: Container

    @Test func erasingDeletesModelsAndTheHistoryThatNobodyWaitsFor() throws {
        for name in ["a", "b", "c"] {
            context.insert(Employee(name: name))
            try context.save()
        }
        try container.erase()
        let fresh = ModelContext(container)
        #expect(try fresh.fetchCount(FetchDescriptor<Employee>()) == 0)
        let transactions = try fresh.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        #expect(transactions.isEmpty)
        fresh.insert(Employee(name: "d"))
        try fresh.save()
        #expect(try fresh.fetchCount(FetchDescriptor<Employee>()) == 1)
    }

    @Test func erasingKeepsWhatACursorHasNotPassed() throws {
        context.insert(Employee(name: "a"))
        try context.save()
        try container.store.setCursor("reader", to: nil)
        let before = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count
        try container.erase()
        #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count == before + 1)
    }

    @Test func readOnlyContainerIsNotErased() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "c.store")
            let filling = ModelContext(try companyContainer(.init(url: url)))
            filling.insert(Employee(name: "a"))
            try filling.save()
            let reading = try companyContainer(.init(url: url, allowsSave: false))
            #expect(throws: SwiftDataError.saveNotAllowed) { try reading.erase() }
            reading.deleteAllData()
            #expect(try ModelContext(reading).fetchCount(FetchDescriptor<Employee>()) == 1)
        }
    }

    @Test func containersAreEqualWhenTheyAreOne() throws {
        #expect(ModelContext(container).container == container)
        #expect(container != (try companyContainer()))
    }

    // MARK: Expressions

    @Test func expressionsArePartsOfPredicates() throws {
        let context = ModelContext(try tripContainer())
        let trip = Trip(name: "Alps", destination: "x")
        context.insert(trip)
        context.insert(Trip(name: "Sea", destination: "y"))
        trip.bucketList = [BucketListItem(title: "Ski"), BucketListItem(title: "Hut")]
        try context.save()
        let unplanned = #Expression<[BucketListItem], Int> { items in
            items.filter { !$0.isDone }.count
        }
        let descriptor = FetchDescriptor<Trip>(
            predicate: #Predicate<Trip> { trip in unplanned.evaluate(trip.bucketList) > 1 })
        #expect(try context.fetch(descriptor).map(\.name) == ["Alps"])
        let isAlps = #Expression<Trip, Bool> { $0.name.localizedStandardContains("ALP") }
        let negated = FetchDescriptor<Trip>(predicate: #Predicate<Trip> { !isAlps.evaluate($0) })
        #expect(try context.fetch(negated).map(\.name) == ["Sea"])
    }
}

extension ModelContainer {
    fileprivate func storeIdentifierForTests(_ context: ModelContext) throws -> String {
        let badge = Badge(number: 1)
        context.insert(badge)
        try context.save()
        return try #require(badge.persistentModelID.storeIdentifier)
    }
}
