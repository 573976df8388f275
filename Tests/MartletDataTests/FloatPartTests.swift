import Foundation
import SwiftData
import Testing

/// `Float` within values that are stored as JSON, which has 0.1 where a column has 0.10000000149011612.
@Suite struct FloatPartTests {
    struct Size: Codable, Hashable {
        var width: Float
        var height: Float?
    }

    @Model final class Parcel {
        var name: String
        var size: Size
        var weights: [Float]

        init(_ name: String, width: Float, height: Float? = nil, weights: [Float] = []) {
            self.name = name
            size = Size(width: width, height: height)
            self.weights = weights
        }
    }

    let context: ModelContext

    init() throws {
        context = ModelContext(
            try ModelContainer(for: Parcel.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
        context.insert(Parcel("a", width: 0.1, height: 0.3, weights: [0.1, 0.7]))
        context.insert(Parcel("b", width: 0.2, weights: [0.2]))
        try context.save()
    }

    private func names(_ predicate: Predicate<Parcel>) throws -> [String] {
        try context.fetch(FetchDescriptor<Parcel>(predicate: predicate)).map(\.name)
    }

    @Test func predicatesCompareFloatsInAValue() throws {
        let (width, height): (Float, Float) = (0.1, 0.3)
        #expect(try names(#Predicate { $0.size.width == width }) == ["a"])
        #expect(try names(#Predicate { $0.size.width < width }) == [])
        #expect(try names(#Predicate { $0.size.width > width }) == ["b"])
        #expect(try names(#Predicate { $0.size.height == height }) == ["a"])
        #expect(try names(#Predicate { $0.size.height == nil }) == ["b"])
    }

    @Test func predicatesSearchListsOfFloats() throws {
        let (light, heavy): (Float, Float) = (0.1, 0.7)
        #expect(try names(#Predicate { $0.weights.contains(light) }) == ["a"])
        #expect(try names(#Predicate { $0.weights.contains { $0 > light && $0 < heavy } }) == ["b"])
        #expect(try names(#Predicate { $0.weights.max() == heavy }) == ["a"])
    }
}
