import Foundation
import GRDB
import MartletStore
import SwiftData
import Testing

@Model
final class Book {
    @Attribute(.unique, .preserveValueOnDeletion) var title: String
    var pages: Int
    init(title: String, pages: Int = 100) {
        self.title = title
        self.pages = pages
    }
}

@Model
final class Song {
    @Attribute(.unique) var title: String
    init(title: String) { self.title = title }
}

/// Two stores in one container: books in one, songs in the other.
struct ConfigurationTests {
    private let books = ModelConfiguration("books", schema: Schema([Book.self]), isStoredInMemoryOnly: true)
    private let songs = ModelConfiguration("songs", schema: Schema([Song.self]), isStoredInMemoryOnly: true)

    private func both() throws -> ModelContainer {
        try ModelContainer(for: Book.self, Song.self, configurations: books, songs)
    }

    private func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "no error"
        } catch {
            return "\(error)"
        }
    }

    @Test func eachConfigurationStoresItsModels() throws {
        let container = try both()
        let context = ModelContext(container)
        let book = Book(title: "a")
        let song = Song(title: "b")
        context.insert(book)
        context.insert(song)
        try context.save()
        #expect(!context.hasChanges)
        #expect(book.persistentModelID.storeIdentifier == container.store.identifier.uuidString)
        #expect(song.persistentModelID.storeIdentifier != book.persistentModelID.storeIdentifier)
        let tables = try container.store.database.read { db in
            try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE name IN ('Book', 'Song')")
        }
        #expect(tables == ["Book"])
        let other = ModelContext(container)
        #expect(try other.fetch(FetchDescriptor<Book>()).map(\.title) == ["a"])
        #expect(try other.fetch(FetchDescriptor<Song>()).map(\.title) == ["b"])
        #expect((other.model(for: song.persistentModelID) as? Song)?.title == "b")
        let id = book.persistentModelID
        #expect(try other.fetchCount(FetchDescriptor<Book>(predicate: #Predicate { $0.persistentModelID == id })) == 1)
        #expect(try other.fetchIdentifiers(FetchDescriptor<Song>()) == [song.persistentModelID])
    }

    @Test func aConfigurationWithoutASchemaStoresTheRest() throws {
        let rest = ModelConfiguration("rest", isStoredInMemoryOnly: true)
        let container = try ModelContainer(
            for: Book.self, Song.self, Company.self, Project.self, configurations: songs, rest)
        let context = ModelContext(container)
        context.insert(Song(title: "s"))
        context.insert(Company(code: "c"))
        try context.save()
        let tables = try container.store.database.read { db in
            try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE name IN ('Book', 'Song', 'Company')")
        }
        #expect(tables == ["Song"])
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Company>()) == 1)
    }

    @Test func relatedModelsGoToTheSameConfiguration() throws {
        let company = ModelConfiguration("company", schema: Schema([Company.self]), isStoredInMemoryOnly: true)
        let container = try ModelContainer(for: Company.self, Book.self, configurations: company, books)
        let context = ModelContext(container)
        let ada = Employee(name: "Ada", company: Company(code: "c"))
        context.insert(ada)
        try context.save()
        #expect(ada.persistentModelID.storeIdentifier == container.store.identifier.uuidString)
    }

    @Test func aRelationshipBetweenStoresIsRefused() {
        let employees = ModelConfiguration("staff", schema: Schema([Employee.self]), isStoredInMemoryOnly: true)
        let companies = ModelConfiguration("firms", schema: Schema([Company.self]), isStoredInMemoryOnly: true)
        let text = message {
            _ = try ModelContainer(for: Company.self, Employee.self, configurations: employees, companies)
        }
        #expect(text.contains("Relationships stay in one store") || text.contains("both name"))
        #expect(throws: SwiftDataError.configuration) {
            try ModelContainer(for: Company.self, Employee.self, configurations: employees, companies)
        }
    }

    @Test func aHierarchyInTwoStoresIsRefused() {
        let base = ModelConfiguration("base", schema: Schema([Trip.self]), isStoredInMemoryOnly: true)
        let other = ModelConfiguration("business", schema: Schema([BusinessTrip.self]), isStoredInMemoryOnly: true)
        #expect(throws: SwiftDataError.configuration) {
            try ModelContainer(for: Trip.self, BusinessTrip.self, configurations: base, other)
        }
    }

    @Test func contradictoryConfigurationsAreRefused() throws {
        let again = ModelConfiguration("again", schema: Schema([Book.self, Song.self]), isStoredInMemoryOnly: true)
        #expect(
            message { _ = try ModelContainer(for: Book.self, Song.self, configurations: books, again) }
                .contains("both name Book"))
        let unnamed = ModelConfiguration(isStoredInMemoryOnly: true)
        #expect(
            message { _ = try ModelContainer(for: Book.self, configurations: unnamed, unnamed) }
                .contains("called default"))
        let other = ModelConfiguration("other", isStoredInMemoryOnly: true)
        #expect(
            message { _ = try ModelContainer(for: Book.self, configurations: unnamed, other) }
                .contains("have no schema"))
        #expect(
            message { _ = try ModelContainer(for: Book.self, Song.self, configurations: books) }
                .contains("No configuration names Song"))
        #expect(
            message { _ = try ModelContainer(for: Book.self, configurations: books, songs) }
                .contains("which the container's schema lacks"))
    }

    @Test func twoConfigurationsWithTheSameFileAreRefused() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "a.store")
            let link = folder.appending(path: "link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
            let first = ModelConfiguration("one", schema: Schema([Book.self]), url: file)
            let second = ModelConfiguration(
                "two", schema: Schema([Song.self]), url: link.appending(path: "a.store"))
            #expect(
                message { _ = try ModelContainer(for: Book.self, Song.self, configurations: first, second) }
                    .contains("have the same file"))
        }
    }

    @Test func oneConfigurationMayForbidSaving() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "books.store")
            do {
                let context = ModelContext(
                    try ModelContainer(for: Book.self, configurations: ModelConfiguration(url: file)))
                context.insert(Book(title: "kept"))
                try context.save()
            }
            let library = ModelConfiguration("library", schema: Schema([Book.self]), url: file, allowsSave: false)
            let container = try ModelContainer(for: Book.self, Song.self, configurations: library, songs)
            let context = ModelContext(container)
            context.insert(Song(title: "s"))
            try context.save()
            #expect(try context.fetch(FetchDescriptor<Book>()).map(\.title) == ["kept"])
            let song = Song(title: "t")
            context.insert(song)
            context.insert(Book(title: "refused"))
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            #expect(song.hasChanges)
            context.rollback()
            #expect(try context.fetchCount(FetchDescriptor<Song>()) == 1)
        }
    }

    @Test func aRefusalByOneStoreLeavesEveryStoreUnchanged() throws {
        let container = try both()
        let context = ModelContext(container)
        let first = Song(title: "a")
        let second = Song(title: "b")
        context.insert(first)
        context.insert(second)
        try context.save()
        let book = Book(title: "new")
        context.insert(book)
        second.title = "a"
        #expect(throws: StoreError.self) { try context.save() }
        #expect(book.persistentModelID.storeIdentifier == nil)
        #expect(context.insertedModelsArray.count == 1)
        #expect(context.changedModelsArray.count == 1)
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Book>()) == 0)
        second.title = "c"
        try context.save()
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Book>()) == 1)
        #expect(try ModelContext(container).fetch(FetchDescriptor<Song>()).map(\.title) == ["a", "c"])
    }

    @Test func aFailedCommitOfOneStoreLeavesItsPartPending() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "books.store")
            let library = ModelConfiguration("library", schema: Schema([Book.self]), url: file)
            let container = try ModelContainer(for: Book.self, Song.self, configurations: library, songs)
            let context = ModelContext(container)
            let book = Book(title: "new")
            let song = Song(title: "s")
            context.insert(book)
            context.insert(song)
            // The first store's transaction is open around the second's, and commits after it.
            try container.store.database.writeWithoutTransaction { db in
                try db.execute(sql: "CREATE TABLE parent(id INTEGER PRIMARY KEY)")
                try db.execute(
                    sql: "CREATE TABLE child(id INTEGER REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED)")
                try db.execute(
                    sql: "CREATE TRIGGER fail AFTER INSERT ON Book BEGIN INSERT INTO child VALUES (1); END")
            }
            #expect(throws: StoreError.self) { try context.save() }
            #expect(!song.hasChanges)
            #expect(book.hasChanges)
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<Song>()) == 1)
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<Book>()) == 0)
            try container.store.database.writeWithoutTransaction { try $0.execute(sql: "DROP TRIGGER fail") }
            try context.save()
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<Book>()) == 1)
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<Song>()) == 1)
        }
    }

    @Test func fetchesIncludeUnsavedChangesOfEveryStore() throws {
        let context = ModelContext(try both())
        context.insert(Book(title: "a"))
        #expect(try context.fetchCount(FetchDescriptor<Song>()) == 0)
        context.insert(Song(title: "b"))
        #expect(try context.fetch(FetchDescriptor<Book>(predicate: #Predicate { $0.title == "a" })).count == 1)
        #expect(try context.fetch(FetchDescriptor<Song>(predicate: #Predicate { $0.title == "b" })).count == 1)
        context.rollback()
        #expect(try context.fetchCount(FetchDescriptor<Book>()) == 0)
        #expect(try context.fetchCount(FetchDescriptor<Song>()) == 0)
    }

    @Test func theHistoryMergesAllStoresByTime() throws {
        let context = ModelContext(try both())
        for round in 0..<3 {
            context.insert(Book(title: "b\(round)"))
            try context.save()
            context.insert(Song(title: "s\(round)"))
            try context.save()
        }
        let all = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        func names(_ transactions: [DefaultHistoryTransaction]) -> [String] {
            transactions.flatMap { $0.changes.map(\.changedPersistentIdentifier.entityName) }
        }
        #expect(Set(all.map(\.storeIdentifier)).count == 2)
        #expect(all.map(\.timestamp) == all.map(\.timestamp).sorted())
        #expect(names(all).filter { $0 == "Book" }.count == 3)
        #expect(names(all).filter { $0 == "Song" }.count == 3)
        var newest = HistoryDescriptor<DefaultHistoryTransaction>(
            sortBy: [SortDescriptor(\.transactionIdentifier, order: .reverse)])
        newest.fetchLimit = 1
        #expect(names(try context.fetchHistory(newest)) == ["Song"])
        let song = try #require(
            all.first { $0.changes.contains { $0.changedPersistentIdentifier.entityName == "Song" } })
        let (token, store) = (song.token, song.storeIdentifier)
        let later = try context.fetchHistory(
            HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token > token }))
        #expect(names(later) == ["Song", "Song"])
        let here = try context.fetchHistory(
            HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.storeIdentifier == store }))
        #expect(Set(here.map(\.storeIdentifier)) == [store])
    }

    @Test func deletingHistoryOfOneStoreLeavesTheOther() throws {
        let context = ModelContext(try both())
        context.insert(Book(title: "b"))
        context.insert(Song(title: "s"))
        try context.save()
        context.insert(Song(title: "t"))
        try context.save()
        let all = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        let last = try #require(
            all.last { $0.changes.contains { $0.changedPersistentIdentifier.entityName == "Song" } })
        let token = last.token
        try context.deleteHistory(
            HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token < token }))
        let rest = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        #expect(rest.filter { $0.storeIdentifier == last.storeIdentifier }.map(\.token) == [token])
        #expect(
            rest.filter { $0.storeIdentifier != last.storeIdentifier }.map(\.token)
                == all.filter { $0.storeIdentifier != last.storeIdentifier }.map(\.token))
    }

    @Test func deleteAllDataClearsEveryStore() throws {
        let container = try both()
        let context = ModelContext(container)
        context.insert(Book(title: "b"))
        context.insert(Song(title: "s"))
        try context.save()
        container.deleteAllData()
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Book>()) == 0)
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Song>()) == 0)
    }

    @Test func configurationsAcceptOptionsThatOnlyAppleHas() {
        let configuration = ModelConfiguration(
            "a", isStoredInMemoryOnly: true, groupContainer: .identifier("group.x"), cloudKitDatabase: .private("c"))
        #expect(configuration.groupAppContainerIdentifier == "group.x")
        #expect(configuration.cloudKitContainerIdentifier == "c")
        #expect(ModelConfiguration("a").cloudKitDatabase == .automatic)
        #expect(ModelConfiguration("a", groupContainer: .none) != ModelConfiguration("a"))
        #expect(ModelConfiguration(for: Book.self, isStoredInMemoryOnly: true).schema != nil)
        #expect(ModelConfiguration("x").url.lastPathComponent == "x.store")
        #expect(ModelConfiguration(url: URL(filePath: "/a/b.store")).name == "b")
    }
}
