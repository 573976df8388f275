import Foundation
import SwiftData
import Testing

@Model
class Ship {
    @Attribute(.unique) var number: String
    var port: Port?

    init(_ number: String) { self.number = number }
}

@Model
final class Tanker: Ship {
    var volume: Double
    var terminal: Terminal?

    init(_ number: String, volume: Double, terminal: Terminal? = nil) {
        self.volume = volume
        self.terminal = terminal
        super.init(number)
    }
}

@Model
final class Terminal {
    @Relationship(inverse: \Tanker.terminal) var tankers: [Tanker] = []

    init() {}
}

@Model
final class Ferry: Ship {
    var decks: Int
    var name: String

    init(_ number: String, decks: Int) {
        self.decks = decks
        name = "Ferry \(number)"
        super.init(number)
    }
}

@Model
final class Port {
    var name: String
    @Relationship(inverse: \Ship.port) var ships: [Ship] = []

    init(_ name: String) { self.name = name }
}

/// A new model of another class with the unique value of a stored one: the row becomes one of that class.
struct ClassChangeTests {
    let container: ModelContainer
    let context: ModelContext
    let tanker = Tanker("1", volume: 2.5)
    let port = Port("Wien")

    init() throws {
        container = try ModelContainer(
            for: Tanker.self, Ferry.self, Port.self, Terminal.self,
            configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
        tanker.port = port
        context.insert(tanker)
        try context.save()
    }

    private func checkThatTheTankerIsGone() throws {
        #expect(tanker.isDeleted)
        #expect(tanker.volume == 2.5)
        #expect(try context.fetchCount(FetchDescriptor<Tanker>()) == 0)
        #expect(try context.fetchCount(FetchDescriptor<Ship>()) == 1)
    }

    @Test func anUpsertMayChangeTheClassOfARow() throws {
        let ferry = Ferry("1", decks: 3)
        ferry.port = port
        context.insert(ferry)
        try context.save()
        #expect(!ferry.isDeleted)
        #expect(ferry.decks == 3)
        #expect(try context.fetch(FetchDescriptor<Ship>()).map { $0 as? Ferry } == [ferry])
        #expect(port.ships == [ferry])
        try checkThatTheTankerIsGone()
    }

    @Test func aFetchReplacesAModelWhoseRowIsOfAnotherClass() throws {
        let other = ModelContext(container)
        other.insert(Ferry("1", decks: 3))
        try other.save()
        let ferry = try #require(try context.fetch(FetchDescriptor<Ship>()).first as? Ferry)
        #expect(ferry.decks == 3)
        #expect(ferry.name == "Ferry 1")
        try checkThatTheTankerIsGone()
    }

    @Test func aBatchReplacesAModelWhoseRowIsOfAnotherClass() throws {
        let other = ModelContext(container)
        other.insert(Ferry("1", decks: 3))
        try other.save()
        let found = try context.fetch(FetchDescriptor<Ship>(), batchSize: 10)
        let ferry = try #require(found.first as? Ferry)
        #expect(ferry.decks == 3)
        try checkThatTheTankerIsGone()
    }

    @Test func aRelationshipReplacesAModelWhoseRowIsOfAnotherClass() throws {
        let other = ModelContext(container)
        let ferry = Ferry("1", decks: 3)
        ferry.port = try other.fetch(FetchDescriptor<Port>()).first
        other.insert(ferry)
        try other.save()
        context.rollback()
        #expect((port.ships.first as? Ferry)?.decks == 3)
        try checkThatTheTankerIsGone()
    }

    @Test func aRowOfAnotherClassIsMissingFromAListAndNoOtherIs() throws {
        let terminal = Terminal()
        for number in ["2", "3"] { context.insert(Tanker(number, volume: 1, terminal: terminal)) }
        try context.save()
        let other = ModelContext(container)
        other.insert(Ferry("3", decks: 1))
        try other.save()
        context.rollback()
        #expect(terminal.tankers.map(\.number) == ["2"])
        terminal.tankers.append(Tanker("4", volume: 1))
        try context.save()
        let stored = try #require(try container.reader().fetch(FetchDescriptor<Terminal>()).first)
        #expect(stored.tankers.map(\.number) == ["2", "4"])
    }

    /// Here the row keeps its class.
    @Test func anUpsertKeepsTheUnsavedChangesOfTheStoredObject() throws {
        let stored = Ferry("2", decks: 3)
        context.insert(stored)
        try context.save()
        stored.name = "renamed"
        context.insert(Ferry("2", decks: 5))
        try context.save()
        #expect(stored.name == "renamed" && stored.decks == 5)
        let read = try #require(try ModelContext(container).fetch(FetchDescriptor<Ferry>()).first)
        #expect(read.name == "renamed" && read.decks == 5)
    }

    @Test func aFetchBeforeTheUpsertIsSavedFindsTheNewClass() throws {
        let ferry = Ferry("1", decks: 3)
        context.insert(ferry)
        #expect(try context.fetch(FetchDescriptor<Ferry>()) == [ferry])
        #expect(try context.fetchCount(FetchDescriptor<Tanker>()) == 0)
        context.rollback()
        #expect(!tanker.isDeleted)
        #expect(try context.fetch(FetchDescriptor<Tanker>()) == [tanker])
        #expect(tanker.port === port)
    }
}
