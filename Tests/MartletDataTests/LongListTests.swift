import Foundation
import GRDB
import MartletData
import MartletStore
import SwiftData
import Testing

/// `contains` with lists of every length and kind.
struct LongListTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try companyContainer()
        context = ModelContext(container)
        for (name, age) in [("Ada", 36), ("B\"o\\b\n\u{1}", 99_999), ("👩‍👩‍👧", -5)] {
            context.insert(Employee(name: name, age: age))
        }
        context.insert(Company(code: "c7"))
        try context.save()
    }

    @Test(arguments: [10_000, 100_000])
    func longListsAreOneParameter(count: Int) throws {
        let ages = Array(0..<count)
        let descriptor = FetchDescriptor<Employee>(predicate: #Predicate { ages.contains($0.age) })
        let query = try context.sql(for: descriptor)
        #expect(query.sql.contains("json_each(?)"))
        #expect(query.arguments.count == 1)
        #expect(try context.fetch(descriptor).map(\.age) == (count == 100_000 ? [36, 99_999] : [36]))
        let names = (0..<count).map { "n\($0)" } + ["B\"o\\b\n\u{1}", "👩‍👩‍👧"]
        let named = FetchDescriptor<Employee>(predicate: #Predicate { names.contains($0.name) })
        #expect(try context.fetch(named).map(\.age) == [99_999, -5])
        #expect(
            try context.fetchCount(FetchDescriptor<Employee>(predicate: #Predicate { !names.contains($0.name) })) == 1)
    }

    @Test func longListUsesTheIndex() throws {
        let codes = (0..<5_000).map { "c\($0)" }
        let descriptor = FetchDescriptor<Company>(predicate: #Predicate { codes.contains($0.code) })
        let query = try context.sql(for: descriptor)
        let plan = try container.store.database.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(query.sql)", arguments: ["[]"]).map { "\($0)" }.joined()
        }
        #expect(plan.contains("SEARCH t0 USING INDEX Company_code_unique"))
        #expect(try context.fetch(descriptor).map(\.code) == ["c7"])
    }

    @Test func longListsMayContainNil() throws {
        let names: [String?] = (0..<2_000).map { "n\($0)" } + [nil]
        let descriptor = FetchDescriptor<Employee>(predicate: #Predicate { names.contains($0.nickname) })
        #expect(try context.fetchCount(descriptor) == 3)
    }

    /// SQLite takes no expression that is more than 1,000 deep.
    @Test func longListsAreTestedValueByValue() throws {
        let ages = Array(0..<2_000)
        #expect(
            try context.fetch(
                FetchDescriptor<Employee>(predicate: #Predicate { model in ages.contains { $0 == model.age } })
            ).map(\.age) == [36])
        #expect(
            try context.fetch(
                FetchDescriptor<Employee>(predicate: #Predicate { model in ages.allSatisfy { $0 < model.age } })
            ).map(\.age) == [99_999])
        let many = Array(0..<30_001)
        let error = #expect(throws: SwiftDataError.self) {
            try context.fetchCount(
                FetchDescriptor<Employee>(predicate: #Predicate { model in many.contains { $0 == model.age } }))
        }
        #expect(error == .unsupportedPredicate)
        #expect(error?.message.contains("contains(_:)") == true)
    }

    @Test func valuesThatJSONCannotHoldAreParameters() throws {
        let everything = Everything()
        everything.date = Date(timeIntervalSince1970: 17.25)
        everything.text = "a\u{0}b"
        context.insert(everything)
        try context.save()
        let dates = (0..<5_000).map { Date(timeIntervalSince1970: Double($0) + 0.25) }
        #expect(
            try context.fetchCount(FetchDescriptor<Everything>(predicate: #Predicate { dates.contains($0.date) })) == 1)
        let texts = (0..<2_000).map { "\($0)" } + ["a\u{0}b"]
        #expect(
            try context.fetchCount(FetchDescriptor<Everything>(predicate: #Predicate { texts.contains($0.text) })) == 1)
        let many = (0..<30_001).map { Date(timeIntervalSince1970: Double($0)) }
        #expect(throws: SwiftDataError.unsupportedPredicate) {
            try context.fetchCount(FetchDescriptor<Everything>(predicate: #Predicate { many.contains($0.date) }))
        }
    }
}
