import Foundation
import MartletStore
import SwiftData
import Testing

@Model
final class Paint {
    @Attribute(.preserveValueOnDeletion) var colour: Colour?
    @Attribute(.preserveValueOnDeletion) var undercoat: Colour?

    init(_ colour: Colour?) { self.colour = colour }
}

struct HistoryPredicateTests {
    private typealias Transaction = DefaultHistoryTransaction
    private let container: ModelContainer
    private let context: ModelContext
    /// Of: a company by "app"; an employee by nobody; the company changed by "widget"; a badge by "app"; the employee
    /// deleted by "sync".
    private let all: [DefaultHistoryTransaction]
    private let company: Company
    private let employeeID: PersistentIdentifier

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
        company = Company(code: "c", title: "C")
        context.author = "app"
        context.insert(company)
        try context.save()
        context.author = nil
        let employee = Employee(name: "Ada")
        context.insert(employee)
        try context.save()
        employeeID = employee.persistentModelID
        context.author = "widget"
        company.title = "D"
        try context.save()
        context.author = "app"
        context.insert(Badge(number: 1))
        try context.save()
        context.author = "sync"
        context.delete(employee)
        try context.save()
        // What attaching the tables wrote isn't of interest.
        let every = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        all = Array(every.suffix(5))
    }

    /// The positions of what is found among the five.
    private func found(
        _ predicate: Predicate<DefaultHistoryTransaction>, _ sortBy: [SortDescriptor<DefaultHistoryTransaction>] = []
    ) throws -> [Int] {
        try context.fetchHistory(HistoryDescriptor(predicate: predicate, sortBy: sortBy)).compactMap { transaction in
            all.firstIndex { $0.token == transaction.token }
        }
    }

    // MARK: The transaction

    @Test func authorIsComparedNilIncluded() throws {
        let app = "app"
        let nobody: String? = nil
        #expect(try found(#Predicate { $0.author == app }) == [0, 3])
        #expect(try found(#Predicate { $0.author != app }) == [1, 2, 4])
        #expect(try found(#Predicate { $0.author == nil }) == [1])
        #expect(try found(#Predicate { $0.author == nobody }) == [1])
        #expect(try found(#Predicate { $0.author != nil }) == [0, 2, 3, 4])
        #expect(try found(#Predicate { !($0.author == app) }) == [1, 2, 4])
        #expect(try found(#Predicate { $0.author ?? "none" == "none" }) == [1])
        #expect(try found(#Predicate { $0.author?.starts(with: "w") == true }) == [2])
        #expect(try found(#Predicate { ($0.author ?? "").localizedStandardContains("PP") }) == [0, 3])
    }

    @Test func authorIsLookedForInAList() throws {
        let authors: [String?] = ["widget", nil]
        let names = ["app", "sync"]
        #expect(try found(#Predicate { authors.contains($0.author) }) == [1, 2])
        #expect(try found(#Predicate { names.contains($0.author ?? "") }) == [0, 3, 4])
        #expect(try found(#Predicate { !names.contains($0.author ?? "") }) == [1, 2])
    }

    @Test func conditionsAreJoinedInAnyWay() throws {
        let token = all[2].token
        #expect(try found(#Predicate { $0.author == "widget" || $0.author == nil }) == [1, 2])
        #expect(try found(#Predicate { $0.token > token && !($0.author == "sync") }) == [3])
        #expect(try found(#Predicate { ($0.token < token && $0.author == "app") || $0.author == "sync" }) == [0, 4])
    }

    @Test func tokensAndIdentifiersAreCompared() throws {
        let (token, id, next) = (all[2].token, all[2].transactionIdentifier, all[3].transactionIdentifier)
        let ids = [all[0].transactionIdentifier, all[4].transactionIdentifier]
        #expect(try found(#Predicate { $0.token > token }) == [3, 4])
        #expect(try found(#Predicate { token <= $0.token }) == [2, 3, 4])
        #expect(try found(#Predicate { $0.token <= token }) == [0, 1, 2])
        #expect(try found(#Predicate { $0.token == token }) == [2])
        #expect(try found(#Predicate { $0.token != token }) == [0, 1, 3, 4])
        #expect(
            try found(#Predicate { $0.transactionIdentifier == id || $0.transactionIdentifier - 1 >= next }) == [2, 4])
        #expect(try found(#Predicate { ids.contains($0.transactionIdentifier) }) == [0, 4])
    }

    @Test func timestampEqualsItself() throws {
        #expect(all.count == 5)
        for (number, transaction) in all.enumerated() {
            let time = transaction.timestamp
            #expect(try found(#Predicate { $0.timestamp == time }).contains(number))
            #expect(try found(#Predicate { $0.timestamp >= time && $0.timestamp <= time }).contains(number))
            #expect(try !found(#Predicate { $0.timestamp < time }).contains(number))
            #expect(try !found(#Predicate { $0.timestamp > time }).contains(number))
        }
        let later = Date(timeIntervalSinceNow: 3600)
        #expect(try found(#Predicate { $0.timestamp < later }) == [0, 1, 2, 3, 4])
        #expect(try found(#Predicate { $0.timestamp > later }) == [])
    }

    @Test func storeAndProcessAreCompared() throws {
        let (store, process, bundle) = (all[0].storeIdentifier, all[0].processIdentifier, all[0].bundleIdentifier)
        #expect(!bundle.isEmpty && process.hasPrefix(bundle) && process != bundle)
        #expect(try found(#Predicate { $0.storeIdentifier == store }) == [0, 1, 2, 3, 4])
        #expect(try found(#Predicate { $0.storeIdentifier != store }) == [])
        #expect(try found(#Predicate { $0.processIdentifier == process }) == [0, 1, 2, 3, 4])
        #expect(try found(#Predicate { $0.bundleIdentifier == bundle && $0.author == "app" }) == [0, 3])
        #expect(try found(#Predicate { $0.bundleIdentifier != bundle }) == [])
    }

    // MARK: Its changes

    @Test func changesAreLookedThroughByEntity() throws {
        let names = ["Badge", "Employee"]
        #expect(
            try found(
                #Predicate { $0.changes.contains { $0.changedPersistentIdentifier.entityName == "Company" } })
                == [0, 2])
        #expect(
            try found(
                #Predicate { $0.changes.contains { names.contains($0.changedPersistentIdentifier.entityName) } })
                == [1, 3, 4])
        #expect(
            try found(
                #Predicate { !$0.changes.contains { $0.changedPersistentIdentifier.entityName == "Company" } })
                == [1, 3, 4])
        #expect(
            try found(
                #Predicate { $0.changes.allSatisfy { $0.changedPersistentIdentifier.entityName == "Badge" } }) == [3])
        #expect(try found(#Predicate { $0.changes.count == 1 }) == [0, 1, 2, 3, 4])
        #expect(try found(#Predicate { $0.changes.isEmpty }) == [])
    }

    @Test func changesAreLookedThroughByIdentifier() throws {
        let id = company.persistentModelID
        let ids = [employeeID, id]
        #expect(
            try found(#Predicate { $0.changes.contains { $0.changedPersistentIdentifier == id } }) == [0, 2])
        #expect(
            try found(#Predicate { $0.changes.contains { $0.changedPersistentIdentifier != id } }) == [1, 3, 4])
        #expect(
            try found(#Predicate { $0.changes.contains { ids.contains($0.changedPersistentIdentifier) } })
                == [0, 1, 2, 4])
        let other = ModelContext(try companyContainer())
        let foreign = Company(code: "x")
        other.insert(foreign)
        try other.save()
        let foreignID = foreign.persistentModelID
        #expect(try found(#Predicate { $0.changes.contains { $0.changedPersistentIdentifier == foreignID } }) == [])
        #expect(
            try found(#Predicate { $0.changes.contains { $0.changedPersistentIdentifier != foreignID } })
                == [0, 1, 2, 3, 4])
    }

    @Test func nestedPredicatesArePartsOfOthers() throws {
        let token = all[0].token
        let isApp = #Predicate<DefaultHistoryTransaction> { $0.author == "app" }
        let isNew = #Predicate<DefaultHistoryTransaction> { $0.token > token }
        #expect(try found(#Predicate { isApp.evaluate($0) && isNew.evaluate($0) }) == [3])
        #expect(try found(#Predicate { !isApp.evaluate($0) || !isNew.evaluate($0) }) == [0, 1, 2, 4])
    }

    @Test func subclassesAreToldApart() throws {
        let context = ModelContext(try tripContainer())
        context.insert(Trip(name: "Alps", destination: "x"))
        try context.save()
        let business = BusinessTrip(name: "Fair", perdiem: 1)
        context.insert(business)
        try context.save()
        business.perdiem = 2
        try context.save()
        let id = business.persistentModelID
        context.delete(business)
        try context.save()
        func kinds(_ predicate: Predicate<DefaultHistoryTransaction>) throws -> [String] {
            try context.fetchHistory(HistoryDescriptor(predicate: predicate)).map { transaction in
                switch transaction.changes.first {
                case .insert(let change): "insert \(change.changedPersistentIdentifier.entityName)"
                case .update(let change): "update \(change.changedPersistentIdentifier.entityName)"
                case .delete(let change): "delete \(change.changedPersistentIdentifier.entityName)"
                case nil: ""
                }
            }
        }
        #expect(
            try kinds(
                #Predicate { $0.changes.contains { $0.changedPersistentIdentifier.entityName == "Trip" } }
            ).first
                == "insert Trip")
        let found = try kinds(
            #Predicate { $0.changes.contains { $0.changedPersistentIdentifier.entityName == "BusinessTrip" } })
        #expect(found.first == "insert BusinessTrip" && found.last == "delete BusinessTrip")
        #expect(try kinds(#Predicate { $0.changes.contains { $0.changedPersistentIdentifier == id } }).count >= 2)
    }

    // MARK: Order and limit

    @Test func theHistoryCanBeSortedByEveryKey() throws {
        let everything = #Predicate<DefaultHistoryTransaction> { $0.changes.count > 0 }
        #expect(try found(everything, [SortDescriptor(\.transactionIdentifier, order: .reverse)]) == [4, 3, 2, 1, 0])
        #expect(
            try found(everything, [SortDescriptor(\.author), SortDescriptor(\.transactionIdentifier, order: .reverse)])
                == [1, 3, 0, 4, 2])
        #expect(try found(everything, [SortDescriptor(\.author, order: .reverse)]) == [2, 4, 0, 3, 1])
        #expect(try found(everything, [SortDescriptor(\.timestamp), SortDescriptor(\.token)]) == [0, 1, 2, 3, 4])
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try found(everything, [SortDescriptor(\.changes.count)])
        }
    }

    @Test func limitIsOfTheSortedAndFiltered() throws {
        var descriptor = HistoryDescriptor<DefaultHistoryTransaction>(
            predicate: #Predicate { $0.author == "app" }, sortBy: [SortDescriptor(\.timestamp, order: .reverse)])
        descriptor.sortBy.append(SortDescriptor(\.transactionIdentifier, order: .reverse))
        descriptor.fetchLimit = 1
        #expect(try context.fetchHistory(descriptor).map(\.token) == [all[3].token])
        descriptor.fetchLimit = 0
        #expect(try context.fetchHistory(descriptor).count == 2)
    }

    // MARK: What can't be asked for

    @Test func unsupportedPartIsNamed() throws {
        let node = UUID()
        let error = #expect(throws: SwiftDataError.self) {
            try found(#Predicate { $0.origin?.node == node })
        }
        #expect(error == .unsupportedPredicate)
        #expect(error?.message.contains("origin") == true)
    }

    @Test func foreignTokenIsRefused() throws {
        let other = ModelContext(try companyContainer())
        other.insert(Badge(number: 1))
        try other.save()
        let token = try #require(try other.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token)
        #expect(throws: SwiftDataError.historyTokenExpired) {
            try found(#Predicate { $0.author == "x" || $0.token > token })
        }
        #expect(throws: SwiftDataError.historyTokenExpired) {
            try context.deleteHistory(
                HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token < token }))
        }
    }

    // MARK: Deleting

    private func delete(_ predicate: Predicate<DefaultHistoryTransaction>?) throws {
        try context.deleteHistory(HistoryDescriptor(predicate: predicate))
    }

    private func left() throws -> [Int] {
        try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).compactMap { transaction in
            all.firstIndex { $0.token == transaction.token }
        }
    }

    @Test func historyIsDeletedUpToATokenOrAnIdentifier() throws {
        let (first, second, third) = (all[0].token, all[1].transactionIdentifier, all[2].token)
        try delete(#Predicate { $0.token <= first })
        #expect(try left() == [1, 2, 3, 4])
        try delete(#Predicate { second >= $0.transactionIdentifier })
        #expect(try left() == [2, 3, 4])
        let isOld = #Predicate<DefaultHistoryTransaction> { $0.token <= third }
        try delete(#Predicate { isOld.evaluate($0) })
        #expect(try left() == [3, 4])
        try delete(nil)
        #expect(try left() == [])
        #expect(throws: SwiftDataError.historyTokenExpired) { try found(#Predicate { $0.token > first }) }
    }

    @Test func historyIsDeletedUpToATime() throws {
        let past = Date(timeIntervalSinceNow: -3600)
        try delete(#Predicate { $0.timestamp < past })
        #expect(try left() == [0, 1, 2, 3, 4])
        let future = Date(timeIntervalSinceNow: 3600)
        try delete(#Predicate { $0.timestamp < future })
        #expect(try left() == [])
    }

    @Test func historyOfAnAuthorIsDeleted() throws {
        let first = all[0].token
        try delete(#Predicate { $0.author == "app" })
        #expect(try left() == [1, 2, 4])
        // Tokens from before them stay good.
        #expect(try found(#Predicate { $0.token > first }) == [1, 2, 4])
        let rest = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).suffix(3)
        #expect(rest.map(\.changes.count) == [1, 1, 1])
        #expect(rest.first?.changes.first?.changedPersistentIdentifier == employeeID)
    }

    @Test func historyIsDeletedByWhatAFetchTakes() throws {
        let token = all[2].token
        try delete(#Predicate { $0.token <= token && $0.author == "app" })
        #expect(try left() == [1, 2, 3, 4])
        try delete(#Predicate { $0.token == token })
        #expect(try left() == [1, 3, 4])
        let id = employeeID
        try delete(#Predicate { $0.changes.contains { $0.changedPersistentIdentifier == id } })
        #expect(try left() == [3])
        let now = Date(timeIntervalSinceNow: 60)
        try delete(#Predicate { $0.token > token && $0.timestamp < now })
        #expect(try left() == [])
    }

    @Test func historyOfAnAuthorIsDeletedWhereItIsTheNewest() throws {
        context.author = "import"
        company.title = "imported"
        try context.save()
        try delete(#Predicate { $0.author == "import" })
        #expect(try left() == [0, 1, 2, 3, 4])
        #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count == 5)
        company.title = "imported again"
        try context.save()
        let last = all[4].token
        #expect(
            try context.fetchHistory(
                HistoryDescriptor(predicate: #Predicate<DefaultHistoryTransaction> { $0.token > last })
            ).map(\.author) == ["import"])
        try delete(#Predicate { $0.author == "import" })
        #expect(try left() == [0, 1, 2, 3, 4])
    }

    @Test func deletionOfChosenTransactionsStopsAtACursor() throws {
        try container.store.setCursor(
            "reader", to: .init(store: container.store.identifier, transaction: all[1].transactionIdentifier))
        try delete(#Predicate { $0.author == "app" || $0.author == "widget" })
        #expect(try left() == [1, 2, 3, 4])
        try container.store.removeCursor("reader")
        try delete(#Predicate { $0.author == "app" || $0.author == "widget" })
        #expect(try left() == [1, 4])
    }

    @Test func storeIsSoundAfterTransactionsWereTakenOutOfTheMiddle() throws {
        try delete(#Predicate { $0.author == "app" })
        let report = try container.store.audit()
        #expect(report.isClean, "\(report)")
        context.author = "app"
        company.title = "E"
        try context.save()
        let last = try #require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last)
        #expect(last.author == "app" && last.changes.count == 1)
    }

    @Test func deletionThatCannotBeAskedForIsRefused() throws {
        let node = UUID()
        #expect(throws: SwiftDataError.unsupportedPredicate) { try delete(#Predicate { $0.origin?.node == node }) }
        #expect(try left() == [0, 1, 2, 3, 4])
    }

    // MARK: Values

    @Test func changesKnowTheirValues() throws {
        guard case .insert(let insert) = all[0].changes[0], case .update(let update) = all[2].changes[0],
            case .delete(let deletion) = all[4].changes[0]
        else {
            Issue.record("other changes")
            return
        }
        let inserted = try #require(insert as? DefaultHistoryInsert<Company>)
        #expect(inserted[\.code] == "c")
        #expect(inserted.values[\.title] == "C")
        let updated = try #require(update as? DefaultHistoryUpdate<Company>)
        #expect(updated.updatedAttributes == [\Company.title])
        #expect(updated[\.title] == "D")
        #expect(updated[\.code] == nil)
        #expect(updated.values.contains(\.title) && !updated.values.contains(\.code))
        // Kept, since the code is preserved on deletion.
        #expect(updated.old[\.title] == "C")
        let deleted = try #require(deletion as? DefaultHistoryDelete<Employee>)
        #expect(deleted.old[\.name] == nil)
    }

    @Test func valuesOfEveryTypeAreTyped() throws {
        let model = Everything()
        model.colour = .green
        model.point = Point(x: 1, y: 2)
        model.words = ["a"]
        context.insert(model)
        try context.save()
        model.otherColour = .red
        model.maybe = 4
        try context.save()
        model.maybe = nil
        try context.save()
        let changes = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).suffix(3)
            .flatMap(\.changes)
        guard case .insert(let first) = changes[0], case .update(let second) = changes[1],
            case .update(let third) = changes[2], let insert = first as? DefaultHistoryInsert<Everything>,
            let set = second as? DefaultHistoryUpdate<Everything>,
            let cleared = third as? DefaultHistoryUpdate<Everything>
        else {
            Issue.record("other changes")
            return
        }
        #expect(insert.values[\.colour] == .green)
        #expect(insert.values[\.point] == Point(x: 1, y: 2))
        #expect(insert.values[\.words] == ["a"])
        #expect(insert.values[\.date] == Date(timeIntervalSince1970: 0))
        #expect(set.values[\.otherColour] == .red)
        #expect(set[\.maybe] == 4)
        #expect(cleared[\.maybe] == nil && cleared.values.contains(\.maybe))
        #expect(cleared.old.isEmpty)
    }

    @Test func aTombstoneHasOptionalEnumerations() throws {
        let container = try ModelContainer(
            for: Paint.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let paint = Paint(.green)
        context.insert(paint)
        try context.save()
        context.delete(paint)
        try context.save()
        let last = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.changes.first
        guard case .delete(let change) = last, let deletion = change as? DefaultHistoryDelete<Paint> else {
            Issue.record("no deletion")
            return
        }
        let (colour, undercoat) = (deletion.tombstone[\.colour], deletion.tombstone[\.undercoat])
        #expect(colour == .green)
        #expect(undercoat == nil)
    }

    @Test func relationshipsAreIdentifiers() throws {
        let employee = Employee(name: "Bob", company: company)
        context.insert(employee)
        try context.save()
        let last = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.changes.first
        guard case .insert(let change) = last, let insert = change as? DefaultHistoryInsert<Employee> else {
            Issue.record("no insert")
            return
        }
        #expect(insert.values[\.company] == company.persistentModelID)
    }

    @Test func transactionsAreHashableByTheirToken() throws {
        let again = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).suffix(5)
        #expect(Set(again) == Set(all))
        #expect(all[0].id == all[0].transactionIdentifier)
        #expect(all[0].token.storeIdentifier == all[0].storeIdentifier)
    }
}
