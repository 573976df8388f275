import Foundation
import SwiftData
import Testing

/// Parts of Codable values, lists of values, and sorting along relationships, all in SQL.
@Suite struct CompositeTests {
    struct Place: Codable, Hashable {
        struct Address: Codable, Hashable {
            var street: String
            var number: Int?
        }
        enum Kind: String, Codable { case town, village }

        var latitude: Double
        var kind: Kind
        var isCapital: Bool
        var address: Address?
        var since: Date
        var renamed: Int
        var total: Decimal = 0
        var names: [String] = []

        var south: Double { -latitude }

        enum CodingKeys: String, CodingKey {
            case latitude, kind, isCapital, address, since, total, names
            case renamed = "other_name"
        }
    }

    @Model final class Stop {
        var name: String
        var place: Place
        var next: Place?
        var tags: [String]
        var marks: [Int]
        var days: Set<Date>
        var trip: Journey?
        init(_ name: String, _ latitude: Double, tags: [String] = [], marks: [Int] = [], trip: Journey? = nil) {
            self.name = name
            place = Place(
                latitude: latitude, kind: latitude > 50 ? .town : .village, isCapital: latitude > 51,
                address: latitude > 49 ? .init(street: "Ring \(Int(latitude))", number: latitude > 50 ? 7 : nil) : nil,
                since: Date(timeIntervalSince1970: latitude), renamed: 1, names: [name, name + "x"])
            self.tags = tags
            self.marks = marks
            days = [Date(timeIntervalSince1970: latitude)]
            self.trip = trip
        }
    }

    @Model final class Journey {
        var title: String
        var cost: Decimal
        var guide: Guide?
        init(_ title: String, cost: Decimal, guide: Guide? = nil) {
            self.title = title
            self.cost = cost
            self.guide = guide
        }
    }

    @Model final class Guide {
        var name: String
        var rank: Int
        init(_ name: String, rank: Int) {
            self.name = name
            self.rank = rank
        }
    }

    let context: ModelContext

    init() throws {
        let container = try ModelContainer(
            for: Stop.self, Journey.self, Guide.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
        let (ann, bob) = (Guide("Ann", rank: 2), Guide("Bob", rank: 1))
        let (north, south) = (Journey("North", cost: 10, guide: ann), Journey("South", cost: 9, guide: bob))
        context.insert(Stop("Wien", 48, tags: ["a", "b"], marks: [3, 9], trip: north))
        context.insert(Stop("Brno", 49.5, tags: ["b"], marks: [-1], trip: south))
        context.insert(Stop("Praha", 50.5, tags: [], marks: [], trip: north))
        context.insert(Stop("Berlin", 52, tags: ["c"], marks: [5, 5]))
        let berlin = try context.fetch(FetchDescriptor<Stop>()).first { $0.name == "Berlin" }
        berlin?.next = Place(
            latitude: 60, kind: .town, isCapital: false, address: nil, since: .distantPast, renamed: 2)
        try context.save()
    }

    private func names(_ predicate: Predicate<Stop>) throws -> [String] {
        try context.fetch(FetchDescriptor<Stop>(predicate: predicate)).map(\.name)
    }

    @Test func predicatesCompareNumbersInAValue() throws {
        #expect(try names(#Predicate { $0.place.latitude > 49 && $0.place.latitude < 51 }) == ["Brno", "Praha"])
        #expect(try names(#Predicate { $0.place.latitude + 1 == 49 }) == ["Wien"])
    }

    @Test func wholeNumbersInAValueAreDividedAsReals() throws {
        // JSON has 60 and 52.
        #expect(try names(#Predicate { ($0.next?.latitude ?? 0) / $0.place.latitude > 1.1 }) == ["Berlin"])
    }

    @Test func predicatesCompareEnumsBoolsAndDatesInAValue() throws {
        let kind = Place.Kind.town
        #expect(try names(#Predicate { $0.place.kind == kind }) == ["Praha", "Berlin"])
        #expect(try names(#Predicate { $0.place.isCapital }) == ["Berlin"])
        #expect(try names(#Predicate { !$0.place.isCapital }) == ["Wien", "Brno", "Praha"])
        let date = Date(timeIntervalSince1970: 49)
        #expect(try names(#Predicate { $0.place.since < date }) == ["Wien"])
    }

    @Test func predicatesReachOptionalValuesAndNestedParts() throws {
        #expect(try names(#Predicate { $0.next?.latitude == 60 }) == ["Berlin"])
        #expect(try names(#Predicate { $0.next == nil }) == ["Wien", "Brno", "Praha"])
        #expect(
            try names(#Predicate { $0.place.address?.street.starts(with: "Ring 5") == true }) == ["Praha", "Berlin"])
        #expect(try names(#Predicate { $0.place.address?.number == nil }) == ["Wien", "Brno"])
        #expect(try names(#Predicate { ($0.place.address?.number ?? 0) > 6 }) == ["Praha", "Berlin"])
    }

    @Test func predicatesRefusePartsStoredUnderAnotherName() throws {
        let refused: [Predicate<Stop>] = [
            #Predicate { $0.place.renamed == 1 }, #Predicate { $0.place.south < 0 }, #Predicate { $0.place.total > 1 },
        ]
        for predicate in refused {
            let error = #expect(throws: SwiftDataError.self) { try names(predicate) }
            #expect(error == .unsupportedPredicate)
        }
        #expect(throws: SwiftDataError.unsupportedPredicate) { try names(#Predicate { $0.place.renamed == 1 }) }
    }

    @Test func predicatesSearchLists() throws {
        #expect(try names(#Predicate { $0.tags.contains("b") }) == ["Wien", "Brno"])
        #expect(try names(#Predicate { $0.marks.contains { $0 > 4 } }) == ["Wien", "Berlin"])
        #expect(try names(#Predicate { $0.marks.allSatisfy { $0 > 4 } }) == ["Praha", "Berlin"])
        #expect(try names(#Predicate { $0.tags.isEmpty }) == ["Praha"])
        #expect(try names(#Predicate { $0.tags.count == 2 }) == ["Wien"])
        #expect(try names(#Predicate { $0.place.names.contains("Brnox") }) == ["Brno"])
        let day = Date(timeIntervalSince1970: 52)
        #expect(try names(#Predicate { $0.days.contains(day) }) == ["Berlin"])
    }

    @Test func predicatesUseMinimumAndMaximum() throws {
        #expect(try names(#Predicate { $0.marks.max() == 9 }) == ["Wien"])
        #expect(try names(#Predicate { ($0.marks.min() ?? 0) < 0 }) == ["Brno"])
        #expect(try names(#Predicate { $0.marks.max() == nil }) == ["Praha"])
    }

    @Test func sqlSelectsTheSameModelsAsSwift() throws {
        let all = try context.fetch(FetchDescriptor<Stop>())
        for predicate in [
            #Predicate<Stop> { $0.marks.max() ?? 0 > 4 }, #Predicate<Stop> { $0.place.address?.number != 7 },
            #Predicate<Stop> { $0.next?.isCapital == false }, #Predicate<Stop> { !$0.tags.contains("b") },
            #Predicate<Stop> { $0.place.latitude >= 49.5 || $0.tags.count > 1 },
        ] {
            #expect(try names(predicate) == all.filter { try predicate.evaluate($0) }.map(\.name))
        }
    }

    // MARK: Order

    private func sorted(_ order: SortDescriptor<Stop>...) throws -> [String] {
        try context.fetch(FetchDescriptor<Stop>(sortBy: order)).map(\.name)
    }

    @Test func modelsSortByAttributesOfRelatedModels() throws {
        #expect(
            try sorted(SortDescriptor(\.trip?.title), SortDescriptor(\.name)) == ["Berlin", "Praha", "Wien", "Brno"])
        #expect(
            try sorted(SortDescriptor(\.trip?.title, order: .reverse), SortDescriptor(\.name))
                == ["Brno", "Praha", "Wien", "Berlin"])
        #expect(
            try sorted(SortDescriptor(\.trip?.guide?.rank), SortDescriptor(\.name)) == [
                "Berlin", "Brno", "Praha", "Wien",
            ])
        #expect(
            try sorted(SortDescriptor(\.trip?.cost), SortDescriptor(\.name)) == ["Berlin", "Brno", "Praha", "Wien"])
    }

    @Test func sortingAlongARelationshipUsesOneJoin() throws {
        let order = [SortDescriptor(\Stop.trip?.title), SortDescriptor(\Stop.trip?.cost)]
        let sql = try context.sql(for: FetchDescriptor<Stop>(sortBy: order)).sql
        #expect(sql.components(separatedBy: "JOIN").count == 2)
    }

    @Test func sortingByAComputedValueIsRefused() throws {
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try sorted(SortDescriptor(\.name.count))
        }
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try sorted(SortDescriptor(\.name.localizedLowercase))
        }
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try sorted(SortDescriptor(\.place.latitude))
        }
    }
}
