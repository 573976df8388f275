import Foundation
import SwiftData
import Testing

struct Home: Codable, Equatable {
    enum Kind: String, Codable, CaseIterable { case flat, house }
    struct Road: Codable, Equatable { var name: String }

    var city: String
    var floor: Int
    var since: Date
    var nick: String?
    var kind: Kind
    var road: Road
    var label: String { "\(city) \(floor)" }
}

struct Renamed: Codable, Equatable {
    var name: String
    enum CodingKeys: String, CodingKey { case name = "n" }
}

@Model
final class Tenant {
    var name: String
    var home: Home
    var second: Home?
    var secret: Renamed
    var landlord: Tenant?

    init(_ name: String, _ city: String, floor: Int, nick: String? = nil) {
        self.name = name
        home = Home(
            city: city, floor: floor, since: Date(timeIntervalSince1970: Double(100 - floor)), nick: nick,
            kind: floor > 2 ? .flat : .house, road: .init(name: city))
        secret = Renamed(name: city)
    }
}

struct Spot: Codable, Equatable {
    var height: Double
    var width: Float
}

@Model
final class Peak {
    var name: String
    var spot: Spot
    var heights: [Double]

    init(_ name: String, _ height: Double) {
        self.name = name
        spot = Spot(height: height, width: Float(height))
        heights = [height, 0]
    }
}

/// Sorting by a stored property of a value that is kept as JSON.
struct SortByPartTests {
    private let context: ModelContext

    init() throws {
        let container = try ModelContainer(
            for: Tenant.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
        let ada = Tenant("Ada", "Oslo", floor: 10, nick: "o")
        let bob = Tenant("Bob", "Bergen", floor: 9)
        let cleo = Tenant("Cleo", "Ärla", floor: 1, nick: "a")
        (ada.landlord, bob.landlord, cleo.landlord) = (bob, cleo, ada)
        for tenant in [ada, bob, cleo] { context.insert(tenant) }
        try context.save()
    }

    private func names(_ sort: SortDescriptor<Tenant>) throws -> [String] {
        try context.fetch(FetchDescriptor(sortBy: [sort])).map(\.name)
    }

    @Test func partsOfCodableValuesAreSortedBy() throws {
        #expect(try names(SortDescriptor(\.home.city)) == ["Bob", "Ada", "Cleo"])
        #expect(try names(SortDescriptor(\.home.floor)) == ["Cleo", "Bob", "Ada"])
        #expect(try names(SortDescriptor(\.home.floor, order: .reverse)) == ["Ada", "Bob", "Cleo"])
        #expect(try names(SortDescriptor(\.home.since)) == ["Ada", "Bob", "Cleo"])
        #expect(try names(SortDescriptor(\.home.nick)) == ["Bob", "Cleo", "Ada"])
        #expect(try names(SortDescriptor(\.landlord?.home.floor)) == ["Bob", "Ada", "Cleo"])
    }

    /// JSON has none: they are text there.
    @Test func infinitiesInCodableValuesCompareAsNumbers() throws {
        let container = try ModelContainer(
            for: Peak.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        for (name, height) in [("high", Double.infinity), ("one", 1), ("low", -.infinity)] {
            context.insert(Peak(name, height))
        }
        try context.save()
        func names(_ descriptor: FetchDescriptor<Peak>) throws -> [String] {
            try context.fetch(descriptor).map(\.name)
        }
        #expect(try names(.init(sortBy: [SortDescriptor(\.spot.height)])) == ["low", "one", "high"])
        #expect(try names(.init(sortBy: [SortDescriptor(\.spot.width)])) == ["low", "one", "high"])
        #expect(try names(.init(predicate: #Predicate { $0.spot.height < 0.5 })) == ["low"])
        #expect(try names(.init(predicate: #Predicate { $0.spot.width > 2 })) == ["high"])
        let infinity = Double.infinity
        #expect(try names(.init(predicate: #Predicate { $0.heights.contains(infinity) })) == ["high"])
        #expect(try names(.init(predicate: #Predicate { $0.heights.allSatisfy { $0 >= 0 } })) == ["high", "one"])
    }

    @Test func partsAreSortedByWithUnsavedChanges() throws {
        context.insert(Tenant("Dan", "Asker", floor: 5))
        #expect(try names(SortDescriptor(\.home.city)) == ["Dan", "Bob", "Ada", "Cleo"])
    }

    @Test func whatIsNoStoredPartIsRefused() throws {
        let refused: [SortDescriptor<Tenant>] = [
            SortDescriptor(\.home.label), SortDescriptor(\.home.road.name), SortDescriptor(\.secret.name),
            SortDescriptor(\.second?.city), SortDescriptor(\.home.city.count),
        ]
        for sort in refused {
            #expect(throws: SwiftDataError.unsupportedSortDescriptor) { try names(sort) }
        }
    }

    @Test func modelThatIsNotThereHasEmptyCodableValues() throws {
        let tenant = try #require(try context.fetch(FetchDescriptor<Tenant>()).first)
        let id = tenant.persistentModelID
        context.delete(tenant)
        try context.save()
        let absent = try #require(ModelContext(context.container).model(for: id) as? Tenant)
        #expect(absent.isDeleted)
        #expect(
            absent.home
                == Home(
                    city: "", floor: 0, since: Date(timeIntervalSince1970: 0), nick: nil, kind: .flat,
                    road: .init(name: "")))
    }
}
