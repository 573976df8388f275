import Foundation
import MartletStore
import SwiftData
import Synchronization
import Testing

/// A container on a JSON file.
final class CustomStoreTests {
    let file = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString).json")

    deinit { try? FileManager.default.removeItem(at: file) }

    private func container() throws -> ModelContainer {
        try ModelContainer(
            for: Schema([Company.self, Project.self, Everything.self, Trip.self, BusinessTrip.self]),
            configurations: JSONStoreConfiguration(file: file))
    }

    private func names(_ context: ModelContext, _ descriptor: FetchDescriptor<Employee>) throws -> [String] {
        try context.fetch(descriptor).map(\.name)
    }

    private func staff() throws -> ModelContext {
        let context = ModelContext(try container())
        for (name, age) in [("Ada", 36), ("Bob", 20), ("Eve", 50), ("Zoë", 36)] {
            context.insert(Employee(name: name, age: age, nickname: name == "Bob" ? "Bobby" : nil))
        }
        try context.save()
        return context
    }

    @Test func everyAttributeTypeSurvivesARoundTripThroughTheFile() throws {
        let context = ModelContext(try container())
        let model = Everything()
        model.int = .min
        model.bool = true
        model.double = -.infinity
        model.float = 0.1
        model.text = "a\u{0}b 👩‍👩‍👧"
        model.date = Date(timeIntervalSince1970: -5_000_000_000)
        model.data = Data([0, 255])
        let uuid = UUID()
        model.uuid = uuid
        model.url = URL(string: "https://example.org/a?b=c")
        model.decimal = Decimal(string: "12345678901234567890.5") ?? 0
        model.colour = .green
        model.otherColour = .red
        model.point = Point(x: 1.5, y: -2)
        model.words = ["a", "\"b\""]
        model.maybe = 7
        context.insert(model)
        try context.save()
        let found = try #require(try ModelContext(container()).fetch(FetchDescriptor<Everything>()).first)
        #expect(found.int == .min)
        #expect(found.bool)
        #expect(found.double == -.infinity)
        #expect(found.float == 0.1)
        #expect(found.text == "a\u{0}b 👩‍👩‍👧")
        #expect(found.date == Date(timeIntervalSince1970: -5_000_000_000))
        #expect(found.data == Data([0, 255]))
        #expect(found.uuid == uuid)
        #expect(found.url?.absoluteString == "https://example.org/a?b=c")
        #expect(found.decimal == Decimal(string: "12345678901234567890.5"))
        #expect(found.colour == .green)
        #expect(found.otherColour == .red)
        #expect(found.point == Point(x: 1.5, y: -2))
        #expect(found.otherPoint == nil)
        #expect(found.words == ["a", "\"b\""])
        #expect(found.maybe == 7)
        // The store's own encoder formats dates.
        #expect(try String(contentsOf: file, encoding: .utf8).contains("1811-07-23T15:06:40Z"))
    }

    @Test func newModelsGetIdentifiersOfTheStore() throws {
        let context = ModelContext(try container())
        let ada = Employee(name: "Ada")
        context.insert(ada)
        #expect(ada.persistentModelID.storeIdentifier == nil)
        try context.save()
        let identifier = ada.persistentModelID
        #expect(identifier.storeIdentifier == file.lastPathComponent)
        #expect(!context.hasChanges)
        let decoded = try JSONDecoder().decode(
            PersistentIdentifier.self, from: JSONEncoder().encode(identifier))
        let other = ModelContext(try container())
        #expect((other.model(for: decoded) as? Employee)?.name == "Ada")
        #expect(try other.fetch(FetchDescriptor<Employee>()).first?.persistentModelID == identifier)
    }

    @Test func theContextHasOneObjectPerIdentifier() throws {
        let context = try staff()
        let first = try context.fetch(FetchDescriptor<Employee>())
        let again = try context.fetch(FetchDescriptor<Employee>())
        #expect(first.count == again.count && zip(first, again).allSatisfy { $0 === $1 })
        #expect(context.model(for: first[0].persistentModelID) === first[0])
        let registered: Employee? = context.registeredModel(for: first[0].persistentModelID)
        #expect(registered === first[0])
    }

    @Test func theContextEvaluatesPredicatesAndOrder() throws {
        let context = try staff()
        func found(_ predicate: Predicate<Employee>, _ sortBy: [SortDescriptor<Employee>] = []) throws -> [String] {
            try names(context, FetchDescriptor(predicate: predicate, sortBy: sortBy))
        }
        #expect(try found(#Predicate { $0.age == 36 }) == ["Ada", "Zoë"])
        #expect(try found(#Predicate { $0.name.localizedStandardContains("zoe") }) == ["Zoë"])
        #expect(try found(#Predicate { $0.nickname?.starts(with: "Bob") ?? false }) == ["Bob"])
        let grown = #Predicate<Employee> { $0.age > 30 }
        let chosen = ["Ada", "Bob"]
        #expect(try found(#Predicate { grown.evaluate($0) && chosen.contains($0.name) }) == ["Ada"])
        #expect(
            try found(#Predicate { $0.age > 10 }, [SortDescriptor(\.age, order: .reverse), SortDescriptor(\.name)])
                == ["Eve", "Ada", "Zoë", "Bob"])
        #expect(
            try self.names(context, FetchDescriptor(sortBy: [SortDescriptor(\.age), SortDescriptor(\.name)]))
                == ["Bob", "Ada", "Zoë", "Eve"])
    }

    @Test func limitAndOffsetApplyWithAndWithoutSupportOfTheStore() throws {
        let context = try staff()
        var descriptor = FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.name)])
        descriptor.fetchLimit = 2
        descriptor.fetchOffset = 1
        #expect(try names(context, descriptor) == ["Bob", "Eve"])
        #expect(try context.fetchCount(descriptor) == 2)
        descriptor.sortBy = []
        descriptor.predicate = #Predicate { $0.age < 50 }
        #expect(try names(context, descriptor) == ["Bob", "Zoë"])
        descriptor.predicate = nil
        #expect(try names(context, descriptor) == ["Bob", "Eve"])
        #expect(try context.fetchCount(FetchDescriptor<Employee>()) == 4)
        #expect(try context.fetchCount(FetchDescriptor<Company>()) == 0)
        #expect(try context.fetchCount(FetchDescriptor<Employee>(predicate: #Predicate { $0.age == 36 })) == 2)
        #expect(try context.fetchIdentifiers(FetchDescriptor<Employee>()).count == 4)
    }

    @Test func fetchesIncludeUnsavedChanges() throws {
        let context = try staff()
        let all = try context.fetch(FetchDescriptor<Employee>())
        all[0].age = 99
        context.delete(all[1])
        context.insert(Employee(name: "New", age: 99))
        let old = FetchDescriptor<Employee>(predicate: #Predicate { $0.age > 45 })
        #expect(try names(context, old) == ["Ada", "Eve", "New"])
        #expect(try context.fetchCount(FetchDescriptor<Employee>()) == 4)
        var saved = old
        saved.includePendingChanges = false
        #expect(try names(context, saved) == ["Eve"])
        #expect(try names(ModelContext(context.container), old) == ["Eve"])
        context.rollback()
        #expect(all[0].age == 36)
        #expect(try names(context, FetchDescriptor()) == ["Ada", "Bob", "Eve", "Zoë"])
    }

    @Test func updatesAndDeletionsAreSaved() throws {
        let context = try staff()
        let all = try context.fetch(FetchDescriptor<Employee>())
        all[0].name = "Adele"
        context.delete(all[1])
        try context.save()
        #expect(all[1].isDeleted)
        #expect(try names(ModelContext(container()), FetchDescriptor()) == ["Adele", "Eve", "Zoë"])
        #expect(try names(context, FetchDescriptor()) == ["Adele", "Eve", "Zoë"])
    }

    @Test func theNextFetchShowsChangesOfAnotherContext() throws {
        let context = try staff()
        let ada = try #require(try context.fetch(FetchDescriptor<Employee>()).first)
        let other = ModelContext(context.container)
        let same = try #require(try other.fetch(FetchDescriptor<Employee>()).first)
        same.age = 37
        try other.save()
        #expect(ada.age == 36)
        _ = try context.fetch(FetchDescriptor<Employee>())
        #expect(ada.age == 37)
    }

    @Test func aRefusedSaveKeepsEverythingPending() throws {
        let context = try staff()
        context.author = "no room"
        let ada = try #require(try context.fetch(FetchDescriptor<Employee>()).first)
        ada.age = 1
        let new = Employee(name: "New")
        context.insert(new)
        #expect(throws: JSONStore.DiskFull.self) { try context.save() }
        #expect(ada.hasChanges)
        #expect(context.insertedModelsArray.count == 1)
        #expect(new.persistentModelID.storeIdentifier == nil)
        context.author = nil
        try context.save()
        #expect(
            try ModelContext(container()).fetchCount(FetchDescriptor<Employee>(predicate: #Predicate { $0.age == 1 }))
                == 1)
    }

    @Test func relationshipsOfAllKindsSurviveASave() throws {
        do {
            let context = ModelContext(try container())
            let company = Company(code: "a")
            let (ada, bob) = (Employee(name: "Ada"), Employee(name: "Bob"))
            let badge = Badge(number: 7)
            let project = Project(title: "p")
            context.insert(company)
            context.insert(project)
            company.employees = [ada, bob]
            company.offices = [Office(city: "Bern")]
            ada.badge = badge
            project.members = [ada, bob]
            try context.save()
            #expect(badge.holder === ada)
            #expect(ada.projects.count == 1)
        }
        let context = ModelContext(try container())
        let company = try #require(try context.fetch(FetchDescriptor<Company>()).first)
        #expect(company.employees.map(\.name) == ["Ada", "Bob"])
        #expect(company.offices.map(\.city) == ["Bern"])
        let ada = try #require(company.employees.first)
        #expect(ada.company === company)
        #expect(ada.badge?.number == 7)
        #expect(ada.badge?.holder === ada)
        #expect(ada.projects.first?.members.map(\.name) == ["Ada", "Bob"])
        let inBern = FetchDescriptor<Company>(predicate: #Predicate { $0.offices.contains { $0.city == "Bern" } })
        #expect(try context.fetchCount(inBern) == 1)
    }

    @Test func inversesAreSetAndSaved() throws {
        let context = ModelContext(try container())
        let (a, b) = (Company(code: "a"), Company(code: "b"))
        let ada = Employee(name: "Ada", company: a)
        context.insert(ada)
        context.insert(b)
        try context.save()
        ada.company = b
        #expect(a.employees.isEmpty)
        #expect(b.employees.map(\.name) == ["Ada"])
        try context.save()
        let other = ModelContext(try container())
        let found = try other.fetch(FetchDescriptor<Company>(sortBy: [SortDescriptor(\.code)]))
        #expect(found.map { $0.employees.count } == [0, 1])
        #expect(found.last?.employees.first?.company === found.last)
    }

    @Test func rollbackRestoresRelationships() throws {
        let context = ModelContext(try container())
        let company = Company(code: "a")
        let ada = Employee(name: "Ada", company: company)
        context.insert(ada)
        try context.save()
        company.employees = []
        #expect(ada.company == nil)
        context.rollback()
        #expect(ada.company === company)
        #expect(company.employees.map(\.name) == ["Ada"])
        #expect(!context.hasChanges)
    }

    @Test func nothingComputedFromAStoreThatFailedIsSaved() throws {
        let filling = ModelContext(try container())
        filling.insert(Employee(name: "Ada", company: Company(code: "a", title: "T")))
        try filling.save()
        let context = ModelContext(try container())
        let company = try #require(try context.fetch(FetchDescriptor<Company>()).first)
        // Forgets what the fetch has read along.
        context.rollback()
        let kept = try Data(contentsOf: file)
        try Data("[".utf8).write(to: file)
        company.title = "\(company.employees.count)"
        try kept.write(to: file)
        let error = #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
        #expect(error?.message.contains("Company.employees") == true)
        context.rollback()
        company.title = "\(company.employees.count)"
        try context.save()
        #expect(try ModelContext(container()).fetch(FetchDescriptor<Company>()).map(\.title) == ["1"])
    }

    @Test func deleteRulesApply() throws {
        let context = ModelContext(try container())
        let company = Company(code: "a")
        let ada = Employee(name: "Ada", company: company)
        let project = Project(title: "p")
        context.insert(ada)
        project.members = [ada]
        context.insert(project)
        try context.save()
        context.delete(company)
        try context.save()
        #expect(ada.isDeleted)
        let other = ModelContext(try container())
        #expect(try other.fetchCount(FetchDescriptor<Employee>()) == 0)
        #expect(try other.fetch(FetchDescriptor<Project>()).first?.members.isEmpty == true)
        let owner = Company(code: "b")
        owner.offices = [Office(city: "Bern")]
        context.insert(owner)
        try context.save()
        context.delete(owner)
        #expect(throws: SwiftDataError.deleteDenied) { try context.save() }
    }

    @Test func subclassesAreFetchedAsTheirOwnClass() throws {
        let context = ModelContext(try container())
        context.insert(Trip(name: "Alps", destination: "Tirol"))
        context.insert(BusinessTrip(name: "Work", perdiem: 10))
        try context.save()
        let other = ModelContext(try container())
        #expect(try other.fetch(FetchDescriptor<Trip>()).map { type(of: $0) == Trip.self } == [true, false])
        #expect(try other.fetch(FetchDescriptor<BusinessTrip>()).map(\.perdiem) == [10])
        #expect(try other.fetchCount(FetchDescriptor<Trip>()) == 2)
        #expect(try other.fetchCount(FetchDescriptor<BusinessTrip>()) == 1)
        let work = FetchDescriptor<Trip>(predicate: #Predicate { $0 is BusinessTrip })
        #expect(try other.fetch(work).map(\.name) == ["Work"])
    }

    @Test func oneContainerMayCombineTablesAndFiles() throws {
        let tables = ModelConfiguration("tables", schema: Schema([Book.self]), isStoredInMemoryOnly: true)
        let container = try ModelContainer(
            for: Schema([Book.self, Company.self]), configurations: [tables, JSONStoreConfiguration(file: file)])
        let context = ModelContext(container)
        let book = Book(title: "b")
        context.insert(book)
        context.insert(Company(code: "c"))
        context.author = "no room"
        #expect(throws: JSONStore.DiskFull.self) { try context.save() }
        #expect(book.persistentModelID.storeIdentifier == nil)
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Book>()) == 0)
        context.author = nil
        try context.save()
        #expect(book.persistentModelID.storeIdentifier == container.store.identifier.uuidString)
        let other = ModelContext(container)
        #expect(try other.fetch(FetchDescriptor<Company>()).map(\.code) == ["c"])
        #expect(try other.fetch(FetchDescriptor<Book>()).map(\.title) == ["b"])
        // The tables have a history, the file has none.
        #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count == 1)
        container.deleteAllData()
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Company>()) == 0)
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Book>()) == 0)
    }

    @Test func aStoreMayNotUseTheTablesWhileItSaves() throws {
        var ledger = LedgerConfiguration()
        ledger.schema = Schema([Note.self])
        let tables = ModelConfiguration("tables", schema: Schema([Book.self]), isStoredInMemoryOnly: true)
        let container = try ModelContainer(for: Schema([Book.self, Note.self]), configurations: [tables, ledger])
        let context = ModelContext(container)
        context.insert(Book(title: "b"))
        context.insert(Note(text: "n"))
        // The same save is writing the tables meanwhile.
        ledger.calls.whileSaving.withLock {
            $0 = { _ = try ModelContext(container).fetchCount(FetchDescriptor<Book>()) }
        }
        #expect {
            try context.save()
        } throws: {
            ($0 as? StoreError)?.code == .nestedUse
        }
        #expect(context.insertedModelsArray.count == 2)
        ledger.calls.whileSaving.withLock { $0 = nil }
        try context.save()
        let other = ModelContext(container)
        #expect(try other.fetch(FetchDescriptor<Book>()).map(\.title) == ["b"])
        #expect(try other.fetch(FetchDescriptor<Note>()).map(\.text) == ["n"])
    }

    @Test func aRelationshipFromTablesToAFileIsRefused() {
        let tables = ModelConfiguration("tables", schema: Schema([Company.self]), isStoredInMemoryOnly: true)
        let other = JSONStoreConfiguration(schema: Schema([Employee.self]), file: file)
        #expect(throws: SwiftDataError.configuration) {
            try ModelContainer(for: Schema([Company.self]), configurations: [tables, other])
        }
    }

    @Test func anInvalidStoreConfigurationIsRefused() {
        #expect(throws: JSONStoreConfiguration.NotJSON.self) {
            try ModelContainer(
                for: Book.self, configurations: JSONStoreConfiguration(file: URL(filePath: "/tmp/a.txt")))
        }
    }

    @Test func aStoreWithoutAHistoryRefusesHistoryRequests() throws {
        let context = ModelContext(try container())
        #expect(throws: SwiftDataError.invalidTransactionFetchRequest) {
            try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        }
        #expect(throws: SwiftDataError.invalidTransactionFetchRequest) {
            try context.fetchHistory(HistoryDescriptor<LedgerTransaction>())
        }
        #expect(throws: SwiftDataError.invalidTransactionFetchRequest) {
            try context.deleteHistory(HistoryDescriptor<LedgerTransaction>())
        }
    }

    @Test func aDamagedFileIsAnErrorAndNotAnEmptyStore() throws {
        let context = try staff()
        try Data("[{]".utf8).write(to: file)
        #expect(throws: DecodingError.self) { try context.fetch(FetchDescriptor<Employee>()) }
    }

    @Test func primaryKeysAreComparedByTheirType() throws {
        func key(_ key: some Comparable & CustomStringConvertible & Codable & Hashable) throws -> PersistentIdentifier {
            try .identifier(for: "s", entityName: "E", primaryKey: key)
        }
        #expect(try key(2) < key(10))
        #expect(try key("a") < key("b"))
        #expect(try key(1) != key("1"))
        let id = UUID()
        #expect(try key(id) == key(id))
        #expect(try key(7).description == "E/7")
    }
}
