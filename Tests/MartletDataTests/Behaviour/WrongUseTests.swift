import Foundation
import MartletData
import MartletStore
import SwiftData
import Testing

@Model
final class Lookalike {
    #Index<Lookalike>([\.name])
    var name: String = ""
    init() {}
}

/// Mistakes cause an error that says what to do, and never end the process.
struct WrongUseTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try sampleContainer()
        context = ModelContext(container)
        context.insert(Sample(1, text: "secret"))
        try context.save()
    }

    /// The message of the error that `body` throws.
    private func message(_ kind: SwiftDataError, _ body: () throws -> Void) throws -> String {
        do {
            try body()
        } catch let error as SwiftDataError {
            #expect(error == kind)
            #expect(!error.message.contains("secret"))
            return error.message
        }
        Issue.record("Nothing was thrown.")
        return ""
    }

    @Test func aPredicateOnATransientPropertyNamesTheModel() throws {
        let context = ModelContext(try companyContainer())
        let predicate = #Predicate<Employee> { $0.note == "none" }
        let text = try message(.unsupportedPredicate) { _ = try context.fetch(FetchDescriptor(predicate: predicate)) }
        #expect(text.contains("Employee"))
    }

    @Test func anUnsupportedPredicateIsRefusedEverywhere() throws {
        let context = ModelContext(try companyContainer())
        let descriptor = FetchDescriptor<Employee>(predicate: #Predicate { $0.note == "none" })
        #expect(throws: SwiftDataError.unsupportedPredicate) { try context.fetchCount(descriptor) }
        #expect(throws: SwiftDataError.unsupportedPredicate) { try context.fetchIdentifiers(descriptor) }
        #expect(throws: SwiftDataError.unsupportedPredicate) { try context.fetch(descriptor, batchSize: 5) }
        #expect(throws: SwiftDataError.unsupportedPredicate) { try context.enumerate(descriptor) { _ in } }
        #expect(throws: SwiftDataError.unsupportedPredicate) {
            try context.delete(model: Employee.self, where: #Predicate { $0.note == "none" })
        }
        #expect(!context.hasChanges)
    }

    @Test func sortingByATransientPropertyIsRefused() throws {
        let context = ModelContext(try companyContainer())
        let text = try message(.unsupportedSortDescriptor) {
            _ = try context.fetch(FetchDescriptor<Employee>(sortBy: [SortDescriptor(\.note)]))
        }
        #expect(text.contains("Employee"))
    }

    @Test func prefetchingAnAttributeIsRefused() throws {
        var descriptor = FetchDescriptor<Sample>()
        descriptor.relationshipKeyPathsForPrefetching = [\.text]
        let text = try message(.unsupportedKeyPath) { _ = try context.fetch(descriptor) }
        #expect(text.contains("Sample"))
    }

    @Test func anUnknownModelIsReportedWithAHint() throws {
        let text = try message(.invalidSchema) { _ = try context.fetch(FetchDescriptor<Lookalike>()) }
        #expect(text.contains("Lookalike"))
        #expect(text.contains("container"))
        #expect(throws: SwiftDataError.invalidSchema) { try context.fetchCount(FetchDescriptor<Lookalike>()) }
        #expect(throws: SwiftDataError.invalidSchema) { try context.delete(model: Lookalike.self) }
    }

    @Test func aRefusedInsertFailsTheNextSaveUntilARollback() throws {
        context.insert(Lookalike())
        context.insert(Sample(2))
        #expect(throws: SwiftDataError.invalidSchema) { try context.save() }
        #expect(throws: SwiftDataError.invalidSchema) { try context.save() }
        context.rollback()
        context.insert(Sample(3))
        try context.save()
        #expect(try context.all(Sample.self).map(\.number) == [1, 3])
    }

    @Test func aNegativeLimitReturnsNothingWithoutAnError() throws {
        var descriptor = FetchDescriptor<Sample>()
        descriptor.fetchLimit = -3
        descriptor.fetchOffset = -7
        #expect(try context.fetch(descriptor).isEmpty)
        descriptor.fetchLimit = .max
        descriptor.fetchOffset = 0
        #expect(try context.fetch(descriptor).count == 1)
    }

    @Test func aTokenOfAnotherStoreIsRefused() throws {
        let stranger = ModelContext(try sampleContainer())
        stranger.insert(Sample(1))
        try stranger.save()
        let token = try #require(try stranger.history().last?.token)
        #expect(throws: SwiftDataError.historyTokenExpired) {
            _ = try context.fetchHistory(
                HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token > token }))
        }
        #expect(throws: SwiftDataError.historyTokenExpired) {
            try context.deleteHistory(
                HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token < token }))
        }
        #expect(try context.history().count == 1)
    }

    @Test(arguments: ["{}", "null", "7", "[]"]) func aDamagedTokenIsADecodingError(_ text: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(DefaultHistoryToken.self, from: Data(text.utf8))
        }
    }

    @Test func aFileThatIsNoDatabaseIsAnError() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "a.store")
            try Data("This is not a database, and it is long enough to be one.".utf8).write(to: url)
            #expect(throws: StoreError.self) { try sampleContainer(.init(url: url)) }
            #expect(try String(contentsOf: url, encoding: .utf8).hasPrefix("This is not"))
        }
    }

    @Test func aPathThatCannotBeCreatedIsAnError() throws {
        try withTemporaryFolder { folder in
            let blocked = folder.appending(path: "file")
            try Data().write(to: blocked)
            let error = #expect(throws: CocoaError.self) {
                try sampleContainer(.init(url: blocked.appending(path: "a.store")))
            }
            #expect(error?.code == .fileWriteFileExists)
        }
    }

    @Test func quantifiersMayUseOuterVariables() throws {
        let outer = #Predicate<Sample> { sample in
            sample.tags.contains { tag in tag.samples.contains { $0.number == sample.number && tag.name != "" } }
        }
        #expect(try context.fetchCount(FetchDescriptor(predicate: outer)) == 0)
    }

    @Test func predicatesMayBeDeeplyNested() throws {
        var predicate = #Predicate<Sample> { $0.number == 1 }
        for _ in 0..<60 {
            let inner = predicate
            predicate = #Predicate<Sample> { inner.evaluate($0) || $0.number == 7 }
        }
        #expect(try context.fetchCount(FetchDescriptor(predicate: predicate)) == 1)
    }
}
