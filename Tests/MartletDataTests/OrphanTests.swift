import Foundation
import MartletTestSupport
import SwiftData
import Testing

/// Models whose context is gone, and models whose relations another program took away.
@Suite struct OrphanTests {
    @Model final class Author {
        var name: String
        @Relationship(inverse: \Book.author) var books: [Book] = []
        @Relationship(inverse: \Award.winners) var awards: [Award] = []
        init(name: String) { self.name = name }
    }

    @Model final class Book {
        enum Binding: String, Codable, CaseIterable { case paper, cloth }
        var title: String
        var binding: Binding
        var author: Author
        init(title: String, binding: Binding = .cloth, author: Author) {
            self.title = title
            self.binding = binding
            self.author = author
        }
    }

    /// Leads to an author who knows nothing of it.
    @Model final class Portrait {
        var painter: String
        var sitter: Author
        init(painter: String, sitter: Author) {
            self.painter = painter
            self.sitter = sitter
        }
    }

    @Model final class Award {
        var name: String
        var winners: [Author] = []
        init(name: String) { self.name = name }
    }

    private let url = FileManager.default.temporaryDirectory.appending(path: "orphans-\(UUID().uuidString).store")

    private func container() throws -> ModelContainer {
        try ModelContainer(
            for: Author.self, Book.self, Award.self, Portrait.self, configurations: ModelConfiguration(url: url))
    }

    /// In a container that nobody holds any more when this returns.
    private func fill() throws {
        let context = ModelContext(try container())
        let author = Author(name: "Mann")
        context.insert(author)
        author.awards = [Award(name: "Nobel")]
        for title in ["Buddenbrooks", "Zauberberg"] { context.insert(Book(title: title, author: author)) }
        try context.save()
    }

    private func fetched<M: PersistentModel>(_ type: M.Type) throws -> [M] {
        try ModelContext(try container()).fetch(FetchDescriptor<M>())
    }

    private func remove() {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
    }

    @Test func relationshipsAreReadAfterTheContextIsGone() throws {
        defer { remove() }
        try fill()
        let author = try #require(try fetched(Author.self).first)
        #expect(author.modelContext == nil)
        #expect(author.books.map(\.title) == ["Buddenbrooks", "Zauberberg"])
        #expect(author.awards.map(\.name) == ["Nobel"])
        let book = try #require(author.books.last)
        #expect(book.author === author && book.author.books.first?.title == "Buddenbrooks")
        #expect(author.persistentModelID.entityName == "Author")
    }

    @Test func whatIsSetWithoutAContextStaysInMemory() throws {
        defer { remove() }
        try fill()
        let author = try #require(try fetched(Author.self).first)
        author.name = "Mannn"
        #expect(author.name == "Mannn")
        #expect(try fetched(Author.self).map(\.name) == ["Mann"])
        let context = ModelContext(try container())
        context.insert(author)
        #expect(throws: SwiftDataError.modelOfAnotherContext) { try context.save() }
        context.rollback()
        #expect(try context.fetchCount(FetchDescriptor<Author>()) == 1)
    }

    @Test func modelsWithoutAContextDontKeepEachOther() throws {
        defer { remove() }
        try fill()
        weak var author: Author?
        weak var book: Book?
        do {
            let books = try fetched(Book.self)
            author = books[0].author
            let held = author ?? books[0].author
            author = held
            book = held.books.first
            #expect(held.books.count == 2)
        }
        #expect(author == nil && book == nil)
    }

    @Test func aModelThatMustBeThereAndIsNotIsOneThatIsDeleted() throws {
        defer { remove() }
        try fill()
        let context = ModelContext(try container())
        let books = try context.fetch(FetchDescriptor<Book>(sortBy: [SortDescriptor(\.title)]))
        // Python keeps no foreign keys unless told to.
        _ = try ForeignProgram.python.run("DELETE FROM Author", on: url.path)
        let author = books[0].author
        #expect(author.isDeleted && author.name == "" && author.books.isEmpty && author.modelContext == nil)
        #expect(try context.fetch(FetchDescriptor<Book>()).map(\.title) == ["Buddenbrooks", "Zauberberg"])
        // One that is put in its place is saved.
        let heir = Author(name: "Heir")
        for book in books { book.author = heir }
        try context.save()
        #expect(try fetched(Book.self).map(\.author.name) == ["Heir", "Heir"])
    }

    @Test func aModelThatIsNotThereOutlivesItsContainer() throws {
        defer { remove() }
        func missing() throws -> Book {
            let context = ModelContext(try container())
            let book = Book(title: "Zauberberg", author: Author(name: "Mann"))
            context.insert(book)
            try context.save()
            let id = book.persistentModelID
            context.delete(book)
            try context.save()
            return try #require(context.model(for: id) as? Book)
        }
        let book = try missing()
        #expect(book.isDeleted && book.title == "" && book.modelContext == nil)
        #expect(book.author.isDeleted && book.author.name == "" && book.author.books.isEmpty)
    }

    @Test func whatAnotherModelMustLeadToIsNotDeleted() throws {
        defer { remove() }
        let context = ModelContext(try container())
        let (mann, hesse) = (Author(name: "Mann"), Author(name: "Hesse"))
        context.insert(hesse)
        let portrait = Portrait(painter: "Ann", sitter: mann)
        context.insert(portrait)
        try context.save()
        context.delete(mann)
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error == .modelValidationFailure && error?.message.contains("Portrait.sitter") == true)
        #expect(portrait.sitter === mann)
        // It may lead elsewhere in the same save, or be deleted too.
        portrait.sitter = hesse
        try context.save()
        #expect(try fetched(Author.self).map(\.name) == ["Hesse"])
        context.delete(hesse)
        context.delete(portrait)
        try context.save()
        #expect(try fetched(Author.self).isEmpty && fetched(Portrait.self).isEmpty)
    }

    @Test func aModelThatWasDeletedHereStaysWhatItWas() throws {
        defer { remove() }
        try fill()
        let context = ModelContext(try container())
        let book = try #require(try context.fetch(FetchDescriptor<Book>()).first)
        let unsaved = Book(title: "Tod in Venedig", author: book.author)
        let author = unsaved.author
        context.delete(author)
        try? context.save()
        context.rollback()
        #expect(unsaved.author === author && unsaved.author.name == "Mann")
    }
}
