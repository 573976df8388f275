import Foundation
import MartletData
import SwiftData
import Testing

/// Decimals are stored as texts and ordered as numbers. Also case-insensitive texts.
struct DecimalTests {
    let context: ModelContext
    let container: ModelContainer

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
        for (text, name) in [("10", "ten"), ("9.5", "Nine"), ("-3", "minus"), ("12345678901234567890.1", "BIG")] {
            let model = Everything()
            model.decimal = try #require(Decimal(string: text))
            model.text = name
            context.insert(model)
        }
        try context.save()
    }

    private func texts(_ predicate: Predicate<Everything>? = nil, _ sortBy: [SortDescriptor<Everything>] = []) throws
        -> [String]
    {
        let descriptor = FetchDescriptor<Everything>(predicate: predicate, sortBy: sortBy)
        let found = try context.fetch(descriptor).map(\.text)
        // Evaluation in memory gives the same result.
        if let predicate {
            let all = try context.fetch(FetchDescriptor<Everything>(sortBy: sortBy))
            #expect(try all.filter { try predicate.evaluate($0) }.map(\.text) == found)
        }
        return found
    }

    @Test func decimalsSortAsNumbers() throws {
        #expect(try texts(nil, [SortDescriptor(\.decimal)]) == ["minus", "Nine", "ten", "BIG"])
        #expect(try texts(nil, [SortDescriptor(\.decimal, order: .reverse)]) == ["BIG", "ten", "Nine", "minus"])
        let descriptor = FetchDescriptor<Everything>(sortBy: [SortDescriptor(\.decimal)])
        #expect(try context.sql(for: descriptor).sql.contains("COLLATE martlet_decimal"))
    }

    @Test func decimalsAreComparedAsNumbers() throws {
        let ten: Decimal = 10
        #expect(try texts(#Predicate { $0.decimal < ten }) == ["Nine", "minus"])
        #expect(try texts(#Predicate { $0.decimal >= ten }) == ["ten", "BIG"])
        let (low, high): (Decimal, Decimal) = (9, 10)
        #expect(try texts(#Predicate { (low...high).contains($0.decimal) }) == ["ten", "Nine"])
        let range = low..<high
        #expect(try texts(#Predicate { range.contains($0.decimal) }) == ["Nine"])
        #expect(try texts(#Predicate { $0.decimal == ten }) == ["ten"])
    }

    @Test func arithmeticOfDecimalsIsRefused() {
        let ten: Decimal = 10
        #expect(throws: SwiftDataError.unsupportedPredicate) {
            try context.fetch(FetchDescriptor<Everything>(predicate: #Predicate { $0.decimal + ten > ten }))
        }
    }

    @Test func caseInsensitiveComparisonIgnoresCase() throws {
        #expect(try texts(#Predicate { $0.text.caseInsensitiveCompare("NINE") == .orderedSame }) == ["Nine"])
        #expect(
            try texts(#Predicate { $0.text.caseInsensitiveCompare("nine") == .orderedAscending })
                == ["minus", "BIG"])
        #expect(
            try texts(#Predicate { $0.text.caseInsensitiveCompare("Big") != .orderedSame })
                == ["ten", "Nine", "minus"])
    }
}
