import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

/// A failed save writes nothing, and keeps every change pending.
struct FailedSaveTests {
    let container: ModelContainer
    let context: ModelContext
    let company = Company(code: "a")
    let ada = Employee(name: "Ada")
    let ben = Employee(name: "Ben")

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
        for model in [ada, ben] { context.insert(model) }
        context.insert(company)
        ada.company = company
        try context.save()
    }

    private func names() throws -> [String] { try container.reader().all(Employee.self).map(\.name) }
    private func execute(_ sql: String) throws { try container.store.write { try $0.execute(sql: sql) } }

    /// Makes changes of every kind, one of which can't be saved.
    private func changeEverything() -> Employee {
        ada.name = "Lovelace"
        ada.company = nil
        context.delete(ben)
        let new = context.inserting(Employee(name: "Cleo", company: company))
        let project = context.inserting(Project(title: "x"))
        project.members = [ada, new]
        return new
    }

    @Test func everyKindOfChangeStaysPendingAndCanBeSavedLater() throws {
        try execute("CREATE TRIGGER stop BEFORE INSERT ON Project BEGIN SELECT raise(ABORT, 'no'); END")
        let new = changeEverything()
        for _ in 0..<3 { #expect(throws: StoreError.self) { try context.save() } }
        #expect(try names() == ["Ada", "Ben"])
        #expect(new.persistentModelID.storeIdentifier == nil)
        #expect(context.insertedModelsArray.count == 2)
        #expect(context.changedModelsArray.count == 1)
        #expect(context.deletedModelsArray.count == 1)
        #expect(ada.hasChanges)
        #expect(ben.isDeleted)
        try execute("DROP TRIGGER stop")
        try context.save()
        #expect(try names() == ["Lovelace", "Cleo"])
        let project = try #require(try container.reader().all(Project.self).first)
        #expect(project.members.map(\.name).sorted() == ["Cleo", "Lovelace"])
        #expect(try container.reader().all(Company.self).first?.employees.map(\.name) == ["Cleo"])
    }

    @Test func rollbackRevertsEveryKindOfChangeAfterAFailedSave() throws {
        try execute("CREATE TRIGGER stop BEFORE INSERT ON Project BEGIN SELECT raise(ABORT, 'no'); END")
        let new = changeEverything()
        #expect(throws: StoreError.self) { try context.save() }
        context.rollback()
        #expect(!context.hasChanges)
        #expect(ada.name == "Ada")
        #expect(ada.company === company)
        #expect(ada.projects.isEmpty)
        #expect(!ben.isDeleted)
        #expect(new.modelContext == nil)
        #expect(company.employees == [ada])
        try context.save()
        #expect(try names() == ["Ada", "Ben"])
    }

    @Test func aFailedSaveLeavesNoTransactionInTheHistory() throws {
        let before = try context.history().count
        try execute("CREATE TRIGGER stop BEFORE INSERT ON Project BEGIN SELECT raise(ABORT, 'no'); END")
        _ = changeEverything()
        #expect(throws: StoreError.self) { try context.save() }
        #expect(try context.history().count == before)
    }

    @Test func aSaveIsRefusedIfNoRowNumberIsLeft() throws {
        context.insert(Project(title: "x"))
        try context.save()
        try execute("UPDATE Project SET _id = 9223372036854775807")
        context.insert(Project(title: "y"))
        #expect(throws: StoreError.self) { try context.save() }
        #expect(context.insertedModelsArray.count == 1)
        try execute("UPDATE Project SET _id = 7")
        try context.save()
        #expect(try container.reader().all(Project.self).map(\.title) == ["x", "y"])
    }

    @Test func aFailedSaveReservesNoRowNumbers() throws {
        let first = context.inserting(Company(code: "b"))
        let second = context.inserting(Employee(name: "Cleo"))
        try execute("CREATE TRIGGER stop BEFORE INSERT ON Employee BEGIN SELECT raise(ABORT, 'no'); END")
        #expect(throws: StoreError.self) { try context.save() }
        try execute("DROP TRIGGER stop")
        // Another context takes the numbers meanwhile.
        let other = ModelContext(container)
        other.insert(Company(code: "c"))
        other.insert(Employee(name: "Dan"))
        try other.save()
        try context.save()
        #expect(try names() == ["Ada", "Ben", "Dan", "Cleo"])
        #expect(first.persistentModelID != second.persistentModelID)
        #expect(try container.reader().all(Company.self).map(\.code) == ["a", "c", "b"])
    }

    @Test func aTriggerOfAnotherProgramMakesASaveFail() throws {
        try execute("ALTER TABLE Badge ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'")
        context.insert(Badge(number: 1))
        try context.save()
        try execute(
            "CREATE TRIGGER strict BEFORE INSERT ON Badge WHEN new.colour = 'grey' "
                + "BEGIN SELECT raise(ABORT, 'which colour?'); END")
        let badge = context.inserting(Badge(number: 2))
        #expect(throws: StoreError.self) { try context.save() }
        #expect(context.insertedModelsArray.count == 1)
        context.delete(badge)
        #expect(!context.hasChanges)
        try context.save()
        #expect(try container.reader().all(Badge.self).map(\.number) == [1])
    }

    @Test func updatesKeepTheValueOfAnotherProgramsColumn() throws {
        try execute("ALTER TABLE Employee ADD COLUMN shoe TEXT")
        try execute("UPDATE Employee SET shoe = '42'")
        ada.name = "Lovelace"
        try context.save()
        let shoes = try container.store.database.read { try String.fetchAll($0, sql: "SELECT shoe FROM Employee") }
        #expect(shoes == ["42", "42"])
    }

    @Test func aFailedFetchKeepsUnsavedChanges() throws {
        try execute("CREATE TRIGGER stop BEFORE INSERT ON Project BEGIN SELECT raise(ABORT, 'no'); END")
        _ = changeEverything()
        #expect(throws: StoreError.self) { try context.all(Project.self) }
        #expect(context.insertedModelsArray.count == 2)
        var descriptor = FetchDescriptor<Employee>()
        descriptor.includePendingChanges = false
        #expect(try context.fetch(descriptor).count == 2)
        try execute("DROP TRIGGER stop")
        #expect(try context.all(Project.self).count == 1)
    }

    @Test func anUnencodableValueStaysUntilItIsReplaced() throws {
        let container = try ModelContainer(
            for: Envelope.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let envelope = context.inserting(Envelope())
        try context.save()
        envelope.sealed = Sealed(isStubborn: true)
        #expect(envelope.sealed.isStubborn)
        #expect(throws: SwiftDataError.unencodableValue) { try context.save() }
        #expect(envelope.sealed.isStubborn)
        envelope.sealed = Sealed(isStubborn: false)
        try context.save()
        envelope.sealed = Sealed(isStubborn: true)
        context.rollback()
        #expect(!envelope.sealed.isStubborn)
        try context.save()
    }

    @Test func aReadOnlyStoreRefusesEveryKindOfChange() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "a.store")
            let writer = ModelContext(try companyContainer(.init(url: url)))
            writer.insert(Employee(name: "Ada"))
            try writer.save()
            let reader = ModelContext(try companyContainer(.init(url: url, allowsSave: false)))
            let ada = try #require(try reader.all(Employee.self).first)
            ada.name = "Lovelace"
            #expect(throws: SwiftDataError.saveNotAllowed) { try reader.save() }
            #expect(ada.name == "Lovelace")
            // SQL can't search unsaved changes of a read-only store: fetches return the stored values.
            #expect(try reader.fetchCount(FetchDescriptor<Employee>(predicate: #Predicate { $0.name == "Ada" })) == 1)
            reader.rollback()
            #expect(ada.name == "Ada")
            reader.delete(ada)
            #expect(throws: SwiftDataError.saveNotAllowed) { try reader.save() }
            reader.rollback()
            #expect(!ada.isDeleted)
            try reader.save()
        }
    }

    @Test func aSaveRefusesRelationshipCountsOutOfTheirLimits() throws {
        let container = try ModelContainer(
            for: Crew.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let crew = context.inserting(Crew())
        #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
        crew.sailors = [Sailor(), Sailor()]
        try context.save()
        crew.sailors.append(Sailor())
        #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
        #expect(crew.sailors.count == 3)
        context.rollback()
        #expect(crew.sailors.count == 2)
        crew.sailors.removeLast()
        try context.save()
        #expect(try container.reader().all(Crew.self).first?.sailors.count == 1)
    }
}

struct Sealed: Codable, Equatable {
    var isStubborn = false
    struct Stubborn: Error {}

    init(isStubborn: Bool = false) { self.isStubborn = isStubborn }
    init(from decoder: any Decoder) throws {
        isStubborn = try decoder.singleValueContainer().decode(Bool.self)
    }
    func encode(to encoder: any Encoder) throws {
        guard !isStubborn else { throw Stubborn() }
        var container = encoder.singleValueContainer()
        try container.encode(isStubborn)
    }

    @Test(arguments: [false, true]) func aSaveIsRefusedWhileAnotherFileIsInPlace(isReplaced: Bool) throws {
        try withTemporaryFolder { folder in
            let (url, away) = (folder.appending(path: "a.store"), folder.appending(path: "away.store"))
            let context = ModelContext(try companyContainer(ModelConfiguration(url: url)))
            context.insert(Badge(number: 1))
            try context.save()
            try FileManager.default.moveItem(at: url, to: away)
            if isReplaced { try Data().write(to: url) }
            context.insert(Badge(number: 2))
            let error = #expect(throws: StoreError.self) { try context.save() }
            #expect(error?.code == .moved)
            #expect(context.insertedModelsArray.count == 1)
            if isReplaced { try FileManager.default.removeItem(at: url) }
            try FileManager.default.moveItem(at: away, to: url)
            try context.save()
            #expect(try context.fetchCount(FetchDescriptor<Badge>()) == 2)
        }
    }
}

@Model
final class Envelope {
    var sealed = Sealed()
    init() {}
}

@Model
final class Crew {
    @Relationship(minimumModelCount: 1, maximumModelCount: 2, inverse: \Sailor.crew) var sailors: [Sailor] = []
    init() {}
}

@Model
final class Sailor {
    var crew: Crew?
    var name = ""
    init() {}
}
