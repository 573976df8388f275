import Foundation
import SwiftData
import Testing

enum OldShelf: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Book.self] }

    @Model
    final class Book {
        @Attribute(.unique, .preserveValueOnDeletion) var isbn: UUID
        @Attribute(.preserveValueOnDeletion) var price: Decimal?
        var title = ""
        init(isbn: UUID, price: Decimal? = nil) {
            self.isbn = isbn
            self.price = price
        }
    }
}

enum NewShelf: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Book.self] }

    @Model
    final class Book {
        @Attribute(.unique, .preserveValueOnDeletion) var isbn: UUID
        var pages = 0
        init(isbn: UUID) { self.isbn = isbn }
    }
}

enum OldPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [OldShelf.self] }
    static var stages: [MigrationStage] { [] }
}

/// Errors that recovery code catches by the names that Apple documents.
struct PublicErrorTests {
    private func inFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "public-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    @Test func loadIssueCatchesProblemsOfTheFile() throws {
        try inFolder { folder in
            let configuration = ModelConfiguration(url: folder.appending(path: "shelf.store"))
            _ = try ModelContainer(for: Schema(versionedSchema: NewShelf.self), configurations: configuration)
            do {
                _ = try ModelContainer(
                    for: Schema(versionedSchema: OldShelf.self), migrationPlan: OldPlan.self,
                    configurations: configuration)
                Issue.record("It was opened.")
            } catch SwiftDataError.loadIssueModelContainer {
            }
            do {
                _ = try ModelContainer(
                    for: Schema(versionedSchema: OldShelf.self), configurations: configuration)
                Issue.record("It was opened.")
            } catch SwiftDataError.backwardMigration {
            }
            try Data("no database".utf8).write(to: folder.appending(path: "text.store"))
            do {
                _ = try ModelContainer(
                    for: OldShelf.Book.self,
                    configurations: ModelConfiguration(url: folder.appending(path: "text.store")))
                Issue.record("It was opened.")
            } catch SwiftDataError.loadIssueModelContainer {
            }
            do {
                _ = try ModelContainer(for: OldShelf.Book.self, configurations: ModelConfiguration(url: folder))
                Issue.record("A folder was opened.")
            } catch SwiftDataError.loadIssueModelContainer {
                Issue.record("What can't be opened holds nothing that is wrong.")
            } catch {
            }
        }
    }

    @Test func configurationErrorsHaveTheirNames() throws {
        func open(_ configurations: ModelConfiguration...) throws {
            _ = try ModelContainer(for: Schema([Guest.self]), configurations: configurations)
        }
        do {
            try open(.init("a", isStoredInMemoryOnly: true), .init("a", isStoredInMemoryOnly: true))
            Issue.record("It was opened.")
        } catch SwiftDataError.duplicateConfiguration {
        }
        do {
            try open(.init("a", schema: Schema([Room.self]), isStoredInMemoryOnly: true))
            Issue.record("It was opened.")
        } catch SwiftDataError.configurationSchemaNotFoundInContainerSchema {
        }
        do {
            try open(.init("a/b"))
            Issue.record("It was opened.")
        } catch SwiftDataError.configurationFileNameContainsInvalidCharacters {
        }
        do {
            try open(.init(String(repeating: "n", count: 246)))
            Issue.record("It was opened.")
        } catch SwiftDataError.configurationFileNameTooLong {
        }
    }

    // MARK: History

    private func history(_ context: ModelContext) throws -> [HistoryChange] {
        try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).flatMap(\.changes)
    }

    @Test func aTombstoneReturnsPreservedValuesByAnyKeyPath() throws {
        let container = try ModelContainer(
            for: OldShelf.Book.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let (isbn, price) = (UUID(), Decimal(string: "12.50"))
        let book = OldShelf.Book(isbn: isbn, price: price)
        context.insert(book)
        try context.save()
        context.delete(book)
        try context.save()
        guard case .delete(let change as DefaultHistoryDelete<OldShelf.Book>)? = try history(context).last else {
            Issue.record("No deletion.")
            return
        }
        let keyPaths: [PartialKeyPath<OldShelf.Book>] = [
            \OldShelf.Book.isbn, \OldShelf.Book.price, \OldShelf.Book.title,
        ]
        let values = keyPaths.map { change.tombstone[$0] }
        #expect(values[0] as? UUID == isbn)
        #expect(values[1] as? Decimal == price)
        #expect(values[2] == nil)
    }

    @Test func anUpdateNamesItsAttributes() throws {
        let container = try ModelContainer(
            for: OldShelf.Book.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        let book = OldShelf.Book(isbn: UUID())
        context.insert(book)
        try context.save()
        book.title = "new"
        try context.save()
        guard case .update(let any)? = try history(context).last,
            let change = any as? DefaultHistoryUpdate<OldShelf.Book>
        else {
            Issue.record("No update.")
            return
        }
        #expect(change.containsAttribute(\.title))
        #expect(!change.containsAttribute(\.price))
    }
}
