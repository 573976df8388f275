import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import SwiftData
import Testing

struct ContextTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
    }

    private func all<T: PersistentModel>(_ type: T.Type, in other: ModelContext? = nil) throws -> [T] {
        try (other ?? context).fetch(FetchDescriptor<T>())
    }

    @Test func anotherContextFindsSavedModels() throws {
        context.insert(Employee(name: "Ada", age: 36))
        #expect(context.hasChanges)
        #expect(context.insertedModelsArray.count == 1)
        try context.save()
        #expect(!context.hasChanges)
        let found = try all(Employee.self, in: ModelContext(container))
        #expect(found.map(\.name) == ["Ada"])
        #expect(found.first?.note == "none")
    }

    @Test func everyAttributeTypeSurvivesARoundTrip() throws {
        let model = Everything()
        model.int = .min
        model.small = -128
        model.bool = true
        model.double = -.infinity
        model.float = 0.1
        model.text = "a\u{0}b 👩‍👩‍👧"
        model.date = Date(timeIntervalSince1970: -5_000_000_000.5)
        model.data = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
        let uuid = UUID()
        model.uuid = uuid
        model.url = URL(string: "https://example.org/a?b=c")
        model.decimal = Decimal(string: "12345678901234567890.123456789") ?? 0
        model.colour = .green
        model.otherColour = .red
        model.point = Point(x: 1.5, y: -2)
        model.otherPoint = Point(x: .infinity, y: 0)
        model.words = ["a", "\"b\""]
        model.maybe = 7
        context.insert(model)
        try context.save()
        let found = try #require(try all(Everything.self, in: ModelContext(container)).first)
        #expect(found.int == .min)
        #expect(found.small == -128)
        #expect(found.bool)
        #expect(found.double == -.infinity)
        #expect(found.float == 0.1)
        #expect(found.text == "a\u{0}b 👩‍👩‍👧")
        #expect(found.date == Date(timeIntervalSince1970: -5_000_000_000.5))
        #expect(found.data == model.data)
        #expect(found.uuid == uuid)
        #expect(found.url?.absoluteString == "https://example.org/a?b=c")
        #expect(found.decimal == Decimal(string: "12345678901234567890.123456789"))
        #expect(found.colour == .green)
        #expect(found.otherColour == .red)
        #expect(found.point == Point(x: 1.5, y: -2))
        #expect(found.otherPoint == Point(x: .infinity, y: 0))
        #expect(found.words == ["a", "\"b\""])
        #expect(found.maybe == 7)
    }

    @Test func aContextHasOneObjectPerIdentifier() throws {
        let ada = Employee(name: "Ada")
        context.insert(ada)
        try context.save()
        #expect(try all(Employee.self).first === ada)
        #expect(context.model(for: ada.persistentModelID) as? Employee === ada)
        let registered: Employee? = ModelContext(container).registeredModel(for: ada.persistentModelID)
        #expect(registered == nil)
    }

    @Test func anIdentifierStaysValidAcrossLaunches() throws {
        try withTemporaryFolder { folder in
            let configuration = ModelConfiguration(url: folder.appending(path: "a.store"))
            var data = Data()
            do {
                let context = ModelContext(try companyContainer(configuration))
                let ada = Employee(name: "Ada")
                context.insert(ada)
                #expect(ada.persistentModelID.storeIdentifier == nil)
                try context.save()
                data = try JSONEncoder().encode(ada.persistentModelID)
            }
            let context = ModelContext(try companyContainer(configuration))
            let identifier = try JSONDecoder().decode(PersistentIdentifier.self, from: data)
            #expect((context.model(for: identifier) as? Employee)?.name == "Ada")
        }
    }

    @Test func rollbackRevertsInsertsUpdatesAndDeletions() throws {
        let kept = Employee(name: "Kept")
        let other = Employee(name: "Other")
        context.insert(kept)
        context.insert(other)
        try context.save()
        kept.name = "Changed"
        context.delete(other)
        let new = Employee(name: "New")
        context.insert(new)
        context.rollback()
        #expect(!context.hasChanges)
        #expect(kept.name == "Kept")
        #expect(!other.isDeleted)
        #expect(new.modelContext == nil)
        #expect(try all(Employee.self).map(\.name) == ["Kept", "Other"])
    }

    @Test func aFailedSaveKeepsEverythingPending() throws {
        context.insert(Company(code: "a"))
        try context.save()
        let other = Company(code: "b")
        context.insert(other)
        try context.save()
        other.code = "a"
        let extra = Employee(name: "Extra")
        context.insert(extra)
        #expect(throws: StoreError.self) { try context.save() }
        #expect(context.hasChanges)
        #expect(context.insertedModelsArray.count == 1)
        other.code = "c"
        try context.save()
        #expect(try all(Employee.self, in: ModelContext(container)).map(\.name) == ["Extra"])
        #expect(try all(Company.self, in: ModelContext(container)).map(\.code) == ["a", "c"])
    }

    @Test func aUniqueValueUpdatesTheStoredModel() throws {
        let old = Company(code: "a", title: "Old")
        context.insert(old)
        try context.save()
        let new = Company(code: "a", title: "New")
        context.insert(new)
        try context.save()
        #expect(try all(Company.self, in: ModelContext(container)).map(\.title) == ["New"])
        #expect(old.title == "New")
        #expect(new.persistentModelID == old.persistentModelID)
    }

    @Test func aUniqueValueOfADeletedModelMayBeInsertedAgain() throws {
        let old = Company(code: "a", title: "Old")
        context.insert(old)
        try context.save()
        context.delete(old)
        context.insert(Company(code: "a", title: "New"))
        try context.save()
        #expect(try all(Company.self).map(\.title) == ["New"])
        #expect(old.isDeleted)
    }

    @Test func aFetchIncludesUnsavedChangesByDefault() throws {
        let stored = Employee(name: "Stored", age: 10)
        let gone = Employee(name: "Gone", age: 10)
        context.insert(stored)
        context.insert(gone)
        try context.save()
        stored.age = 50
        context.delete(gone)
        let new = Employee(name: "New", age: 60)
        context.insert(new)
        var descriptor = FetchDescriptor<Employee>(
            predicate: #Predicate { $0.age > 40 }, sortBy: [SortDescriptor(\.age, order: .reverse)])
        #expect(try context.fetch(descriptor) == [new, stored])
        #expect(try context.fetchCount(FetchDescriptor<Employee>()) == 2)
        descriptor.includePendingChanges = false
        #expect(try context.fetch(descriptor).isEmpty)
        #expect(context.hasChanges)
        #expect(try all(Employee.self, in: ModelContext(container)).count == 2)
    }

    @Test func aFetchUpdatesChangesOfAnotherContext() throws {
        let ada = Employee(name: "Ada")
        context.insert(ada)
        try context.save()
        let other = ModelContext(container)
        try #require(try all(Employee.self, in: other).first).name = "Lovelace"
        try other.save()
        #expect(ada.name == "Ada")
        _ = try all(Employee.self)
        #expect(ada.name == "Lovelace")
    }

    @Test func limitAndOffsetApplyToTheSortedResult() throws {
        for age in [3, 1, 2, 5, 4] { context.insert(Employee(name: "E", age: age)) }
        try context.save()
        var descriptor = FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.age)])
        descriptor.fetchLimit = 2
        descriptor.fetchOffset = 1
        #expect(try context.fetch(descriptor).map(\.age) == [2, 3])
        #expect(try context.fetchCount(descriptor) == 2)
        #expect(try context.fetchIdentifiers(descriptor).count == 2)
    }

    @Test func observersAreNotifiedOfChanges() throws {
        let ada = Employee(name: "Ada")
        context.insert(ada)
        nonisolated(unsafe) var heard = 0
        withObservationTracking {
            _ = ada.name
        } onChange: {
            heard += 1
        }
        ada.age = 5
        #expect(heard == 0)
        ada.name = "Lovelace"
        #expect(heard == 1)
    }

    @Test func rowsOfOtherProgramsAreReadAndValidated() throws {
        try container.store.write { db in
            try db.execute(sql: "INSERT INTO Employee(name, age) VALUES ('Shell', 3)")
        }
        #expect(try all(Employee.self).map(\.name) == ["Shell"])
        try container.store.write { db in
            try db.execute(sql: "INSERT INTO Everything(colour) VALUES ('mauve')")
        }
        #expect(throws: SwiftDataError.corruptValue) { try all(Everything.self) }
    }

    @Test func aSaveSkipsAnUpdateOfAVanishedRow() throws {
        let ada = Employee(name: "Ada")
        context.insert(ada)
        try context.save()
        container.deleteAllData()
        ada.name = "Lovelace"
        try context.save()
        #expect(ada.isDeleted)
        #expect(try all(Employee.self).isEmpty)
    }

    @Test func aModelOfAnotherContextIsRefused() throws {
        let ada = Employee(name: "Ada")
        context.insert(ada)
        try context.save()
        let other = ModelContext(container)
        other.insert(ada)
        #expect(throws: SwiftDataError.modelOfAnotherContext) { try other.save() }
    }

    @Test func aTransactionSavesOrRollsBack() throws {
        try context.transaction { context.insert(Employee(name: "Ada")) }
        #expect(!context.hasChanges)
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try context.transaction {
                context.insert(Employee(name: "Ben"))
                throw Stop()
            }
        }
        #expect(!context.hasChanges)
        #expect(try all(Employee.self).map(\.name) == ["Ada"])
    }

    @Test func modelsAreDeletedByPredicateAndEnumerated() throws {
        for age in 1...5 { context.insert(Employee(name: "E", age: age)) }
        try context.save()
        try context.delete(model: Employee.self, where: #Predicate { $0.age > 3 })
        try context.save()
        var ages: [Int] = []
        try context.enumerate(FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.age)]), batchSize: 2) {
            ages.append($0.age)
        }
        #expect(ages == [1, 2, 3])
    }

    @Test func deletingAnUnsavedModelSavesNothing() throws {
        let company = Company(code: "a")
        context.insert(company)
        let ada = Employee(name: "Ada")
        company.employees = [ada]
        context.delete(company)
        context.insert(Employee(name: "Ben"))
        try context.save()
        #expect(try all(Company.self).isEmpty)
        #expect(try all(Employee.self).map(\.name) == ["Ben"])
        #expect(ada.isDeleted)
    }

    @Test func aTemporaryIdentifierFindsTheSavedModel() throws {
        let ada = Employee(name: "Ada")
        context.insert(ada)
        let temporary = ada.persistentModelID
        try context.save()
        #expect(ada.persistentModelID != temporary)
        #expect(context.model(for: temporary) as? Employee === ada)
        let found = try context.fetch(
            FetchDescriptor<Employee>(predicate: #Predicate { $0.persistentModelID == temporary }))
        #expect(found == [ada])
    }

    @Test func aSaveIsOneTransactionWithItsAuthor() throws {
        context.author = "app"
        context.insert(Employee(name: "Ada", company: Company(code: "a")))
        try context.save()
        let history = try context.fetchHistory(
            HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.author == "app" }))
        #expect(history.map(\.changes.count) == [2])
    }
}

struct ContainerTests {
    @Test func theShellReadsPlainTables() throws {
        let container = try tripContainer()
        let context = ModelContext(container)
        let trip = PersonalTrip(name: "Sister", reason: .family, startDate: .day(1))
        trip.livingAccommodation = LivingAccommodation(address: "Hut")
        context.insert(trip)
        try context.save()
        let row = try container.store.database.read { db in
            try Row.fetchOne(
                db,
                sql: """
                    SELECT Trip.name, Trip._type, Trip.startDate, Trip.reason, LivingAccommodation.address
                    FROM Trip JOIN LivingAccommodation ON LivingAccommodation._id = Trip.livingAccommodation
                    """)
        }
        let expected: [any DatabaseValueConvertible] = ["Sister", "PersonalTrip", 86_400.0, "family", "Hut"]
        #expect(row.map { Array($0.databaseValues) } == expected.map(\.databaseValue))
    }

    @Test func theShellReadsAndWritesTables() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "c.store")
            let container = try companyContainer(ModelConfiguration(url: url))
            let context = ModelContext(container)
            context.insert(Employee(name: "Ada", age: 36, company: Company(code: "a")))
            try context.save()
            let read = try ForeignProgram.shell.run(
                "SELECT name, age, code FROM Employee JOIN Company ON Company._id = Employee.company", on: url.path)
            #expect(read == "Ada|36|a\n")
            try ForeignProgram.shell.run(
                """
                UPDATE Employee SET age = 37 WHERE name = 'Ada';
                INSERT INTO Employee(name, age, company) SELECT 'Ben', 41, company FROM Employee
                """, on: url.path)
            let employees = try ModelContext(container).fetch(
                FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.name)]))
            #expect(employees.map(\.name) == ["Ada", "Ben"])
            #expect(employees.map(\.age) == [37, 41])
            #expect(employees.map { $0.company?.code } == ["a", "a"])
        }
    }

    @Test func uniqueAndPreservedAttributesIdentifyTheRow() throws {
        let container = try companyContainer()
        let context = ModelContext(container)
        context.insert(Company(code: "a"))
        context.insert(Employee(name: "Ada"))
        try context.save()
        let changes = try container.store.fetchHistory().flatMap(\.changes)
        #expect(changes.first { $0.entity == "Company" }?.identity == StableID(values: [.text("a")]))
        #expect(changes.first { $0.entity == "Employee" }?.identity != nil)
    }

    private func plan<T: PersistentModel>(_ descriptor: FetchDescriptor<T>, _ container: ModelContainer) throws
        -> String
    {
        let (sql, arguments) = try ModelContext(container).sql(for: descriptor)
        return try container.store.database.inDatabase { db in
            let statement = try PreparedStatement(db, "EXPLAIN QUERY PLAN \(sql)")
            for (index, value) in arguments.enumerated() { statement.bind(Int32(index + 1), value) }
            var lines: [String] = []
            while try statement.step() { lines.append(statement.text(3)) }
            return lines.joined(separator: "; ")
        }
    }

    @Test func predicatesUseTheIndexesOfAttributes() throws {
        let container = try tripContainer()
        let (day, name) = (Date.day(1), "Alps")
        let byDate = FetchDescriptor<Trip>(predicate: #Predicate { $0.startDate >= day })
        #expect(try plan(byDate, container).contains("SEARCH t0 USING INDEX Trip_startDate_index"))
        let byName = FetchDescriptor<Trip>(predicate: #Predicate { $0.name == name })
        #expect(try plan(byName, container).contains("SEARCH t0 USING INDEX Trip_name_"))
        let bySubclass = FetchDescriptor<Trip>(predicate: #Predicate { $0 is PersonalTrip && $0.name == name })
        #expect(try plan(bySubclass, container).contains("SEARCH t0 USING INDEX Trip_name_"))
        let companies = try companyContainer()
        let related = FetchDescriptor<Company>(predicate: #Predicate { $0.employees.contains { $0.age > 3 } })
        let text = try plan(related, companies)
        #expect(text.contains("SEARCH t1 USING INDEX Employee_company_index"), "\(text)")
    }

    @Test func aFileWithOtherModelsIsRefused() throws {
        try withTemporaryFolder { folder in
            let configuration = ModelConfiguration(url: folder.appending(path: "a.store"))
            _ = try companyContainer(configuration)
            #expect(throws: SwiftDataError.incompatibleStore) {
                try ModelContainer(for: Trip.self, configurations: configuration)
            }
            _ = try companyContainer(configuration)
        }
    }

    @Test func aNewerStoreIsRefused() throws {
        try withTemporaryFolder { folder in
            let configuration = ModelConfiguration(url: folder.appending(path: "a.store"))
            let models: [any PersistentModel.Type] = [Company.self, Project.self, Everything.self]
            _ = try ModelContainer(
                for: Schema(models, version: Schema.Version(2, 0, 0)), configurations: configuration)
            #expect(throws: SwiftDataError.incompatibleStore) {
                try ModelContainer(for: Schema(models, version: .init(1, 9, 9)), configurations: configuration)
            }
        }
    }

    @Test func aReadOnlyContainerRefusesToSave() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "a.store")
            let writer = try companyContainer(ModelConfiguration(url: url))
            let context = ModelContext(writer)
            context.insert(Employee(name: "Ada"))
            try context.save()
            let reader = ModelContext(try companyContainer(ModelConfiguration(url: url, allowsSave: false)))
            #expect(try reader.fetch(FetchDescriptor<Employee>()).map(\.name) == ["Ada"])
            reader.insert(Employee(name: "Ben"))
            #expect(throws: SwiftDataError.saveNotAllowed) { try reader.save() }
        }
    }

    @Test func twoContainersOnOneFileSeeEachOther() throws {
        try withTemporaryFolder { folder in
            let configuration = ModelConfiguration(url: folder.appending(path: "a.store"))
            let (a, b) = (try companyContainer(configuration), try companyContainer(configuration))
            let (first, second) = (ModelContext(a), ModelContext(b))
            first.insert(Employee(name: "Ada"))
            try first.save()
            second.insert(Employee(name: "Ben"))
            try second.save()
            #expect(try first.fetch(FetchDescriptor<Employee>()).map(\.name) == ["Ada", "Ben"])
        }
    }
}
