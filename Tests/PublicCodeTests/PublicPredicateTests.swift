import Foundation
import SwiftData
import Testing

/// Conditions on optionals as public projects write them. Each is evaluated by the store and on the objects, and the
/// results must agree.
struct PublicPredicateTests {
    private let context: ModelContext

    init() throws {
        let container = try ModelContainer(
            for: Album.self, Track.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
        let blue = Album(title: "Blue", subtitle: "Café", year: 1971)
        let red = Album(title: "Red", year: 2012)
        let gray = Album(title: "Gray", subtitle: "")
        for album in [blue, red, gray] { context.insert(album) }
        context.insert(Track(name: "River", comment: "Sad and slow", album: blue))
        context.insert(Track(name: "Carey", album: blue))
        context.insert(Track(name: "Holy Ground", comment: "fast", album: red))
        context.insert(Track(name: "Single"))
        try context.save()
    }

    private func albums(_ predicate: Predicate<Album>) throws -> [String] {
        let found = try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.title)]))
        let evaluated = try context.fetch(FetchDescriptor<Album>(sortBy: [SortDescriptor(\.title)]))
            .filter { try predicate.evaluate($0) }
        #expect(found == evaluated)
        return found.map(\.title)
    }

    private func tracks(_ predicate: Predicate<Track>) throws -> [String] {
        let found = try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)]))
        let evaluated = try context.fetch(FetchDescriptor<Track>(sortBy: [SortDescriptor(\.name)]))
            .filter { try predicate.evaluate($0) }
        #expect(found == evaluated)
        return found.map(\.name)
    }

    @Test func predicatesSearchTheTextOfAnOptional() throws {
        let text = "cafe"
        #expect(try albums(#Predicate { $0.subtitle?.localizedStandardContains(text) == true }) == ["Blue"])
        #expect(
            try albums(#Predicate { $0.subtitle?.localizedStandardContains(text) != true }) == ["Gray", "Red"])
        #expect(
            try albums(
                #Predicate {
                    $0.subtitle?.localizedStandardContains(text) == true || $0.title.localizedStandardContains(text)
                }) == ["Blue"])
        let sad = "sad"
        #expect(
            try tracks(#Predicate { $0.comment?.localizedStandardContains(sad) == true }) == ["River"])
        #expect(
            try tracks(#Predicate { $0.album?.subtitle?.localizedStandardContains(text) == true })
                == ["Carey", "River"])
    }

    @Test func predicatesCompareOptionals() throws {
        let (title, part) = ("Blue", "Caf")
        #expect(try tracks(#Predicate { $0.album?.title == title }) == ["Carey", "River"])
        #expect(try albums(#Predicate { $0.subtitle != nil }) == ["Blue", "Gray"])
        #expect(try albums(#Predicate { $0.subtitle?.isEmpty == true }) == ["Gray"])
        #expect(try albums(#Predicate { $0.subtitle?.isEmpty != true }) == ["Blue", "Red"])
        #expect(try albums(#Predicate { $0.subtitle?.starts(with: part) == true }) == ["Blue"])
        let lower = "café"
        #expect(try albums(#Predicate { $0.subtitle?.caseInsensitiveCompare(lower) == .orderedSame }) == ["Blue"])
    }

    @Test func predicatesSearchOptionalLists() throws {
        let name = "River"
        #expect(try albums(#Predicate { $0.tracks?.contains(where: { $0.name == name }) == true }) == ["Blue"])
        #expect(try albums(#Predicate { $0.tracks?.contains { $0.name == name } == true }) == ["Blue"])
        #expect(try albums(#Predicate { $0.tracks?.contains { $0.name == name } ?? false }) == ["Blue"])
        #expect(
            try albums(#Predicate { $0.tracks.flatMap { $0.contains { $0.name == name } } == true }) == ["Blue"])
        #expect(try albums(#Predicate { ($0.tracks?.count ?? 0) > 1 }) == ["Blue"])
        #expect(try albums(#Predicate { $0.tracks?.isEmpty == true }) == ["Gray"])
        #expect(try albums(#Predicate { $0.tracks?.filter { $0.name == name }.isEmpty == false }) == ["Blue"])
        let slow = "slow"
        #expect(
            try albums(#Predicate { $0.tracks?.contains { $0.comment?.contains(slow) == true } == true }) == ["Blue"])
        #expect(
            try tracks(#Predicate { $0.album?.tracks?.contains { $0.name == name } == true }) == ["Carey", "River"])
    }

    @Test func flatMapUnwrapsAnOptionalNumber() throws {
        #expect(try albums(#Predicate { $0.year.flatMap { $0 > 2000 } ?? false }) == ["Red"])
        #expect(try albums(#Predicate { $0.year.flatMap { $0 > 2000 } == nil }) == ["Gray"])
    }

    @Test func aPredicateOnTwoModelsIsEvaluated() throws {
        let all = try context.fetch(FetchDescriptor<Album>(sortBy: [SortDescriptor(\.title)]))
        let isBefore = #Predicate<Album, Album> { $0.title < $1.title }
        #expect(try isBefore.evaluate(all[0], all[1]))
        #expect(try !isBefore.evaluate(all[1], all[0]))
        let isSame = #Predicate<Album, Album> { a, b in a.title == b.title }
        #expect(try isSame.evaluate(all[0], all[0]))
    }

    @Test func predicatesOnOtherTypesAreFoundations() throws {
        let isLong = #Predicate<String> { $0.count > 3 }
        #expect(try isLong.evaluate("long!"))
        let doubled = #Expression<Int, Int> { $0 * 2 }
        #expect(try doubled.evaluate(4) == 8)
    }
}
