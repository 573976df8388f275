import Foundation
import SwiftData
import Testing

/// SQL selects the same models as Foundation does when it evaluates the predicate on each model.
struct PredicateAgreementTests {
    /// Filled once; no test changes it.
    private static let container = Result {
        let container = try sampleContainer()
        let context = ModelContext(container)
        try fill(context, seed: 11)
        try context.save()
        return container
    }

    let context: ModelContext

    init() throws { context = ModelContext(try Self.container.get()) }

    /// Random rows whose values hit the limits of every predicate, in many combinations with nil.
    private static func fill(_ context: ModelContext, seed: UInt64) throws {
        var random = SeededGenerator(seed)
        func pick<T>(_ values: [T]) -> T { values[Int(random.next() % UInt64(values.count))] }
        let texts = ["", "a", "ab", "b", "AB", "a\u{0}b", "été", "👩‍👩‍👧", "👩", "a%", "_", "zz", "🇦🇹🇩🇪", "\r\n"]
        var owners: [Owner?] = [nil]
        for number in 0..<6 {
            let owner = context.inserting(
                Owner(pick(["a", "b", "ab"]), nick: pick([nil, "a", "b"]), rank: number % 4, boss: pick(owners)))
            owners.append(owner)
        }
        let tags = ["w", "x", "y", "z"].map { context.inserting(Tag($0)) }
        for _ in 0..<60 {
            let sample = context.inserting(
                Sample(pick(Array(-4...6)), text: pick(texts), note: pick([nil, "", "a", "b"]), owner: pick(owners)))
            sample.big = pick([0, 9, 10, 1 << 63, .max, (1 << 63) - 1])
            sample.ratio = pick([-1.5, 0, 0.25, 0.5, 1, .infinity])
            sample.count = pick([nil, 0, 3, 4])
            sample.flag = pick([true, false])
            sample.maybeFlag = pick([nil, true, false])
            sample.date = Date(timeIntervalSince1970: pick([-1e10, -0.5, 0, 1e9]))
            sample.colour = pick([.red, .green])
            sample.otherColour = pick([nil, .red, .green])
            sample.tags = tags.filter { _ in pick([true, false, false]) }
        }
    }

    private func numbers(_ models: [Sample]) -> [PersistentIdentifier] { models.map(\.persistentModelID).sorted() }

    @Test(arguments: PredicateCase.all)
    func sqlSelectsTheSameModelsAsFoundation(_ example: PredicateCase) throws {
        let expected = try context.all(Sample.self).filter { try example.predicate.evaluate($0) }
        let found = try context.fetch(FetchDescriptor(predicate: example.predicate))
        #expect(numbers(found) == numbers(expected))
        #expect(try context.fetchCount(FetchDescriptor(predicate: example.predicate)) == expected.count)
    }

    @Test(arguments: PredicateCase.all)
    func negationSelectsTheRest(_ example: PredicateCase) throws {
        let predicate = example.predicate
        let negated = #Predicate<Sample> { !predicate.evaluate($0) }
        let (chosen, rest) = (
            try context.fetch(FetchDescriptor(predicate: predicate)),
            try context.fetch(FetchDescriptor(predicate: negated))
        )
        #expect(numbers(chosen + rest) == numbers(try context.all(Sample.self)))
    }

    @Test func sqlSelectsUnsavedModelsLikeFoundation() throws {
        let context = ModelContext(try sampleContainer())
        try Self.fill(context, seed: 5)
        let inserted = context.insertedModelsArray.compactMap { $0 as? Sample }
        for example in PredicateCase.all {
            let expected = try inserted.filter { try example.predicate.evaluate($0) }
            let found = try context.fetch(FetchDescriptor(predicate: example.predicate))
            #expect(numbers(found) == numbers(expected), "\(example.name)")
        }
    }

    private func check<V: Comparable>(_ keyPath: any KeyPath<Sample, V> & Sendable) throws {
        for order in [SortOrder.forward, .reverse] {
            let sort = [SortDescriptor(keyPath, order: order), SortDescriptor(\Sample.number)]
            try check(sort) { "\($0[keyPath: keyPath]) \($0.number)" }
        }
    }

    /// Models that are equal for every descriptor may have any order.
    private func check(_ sort: [SortDescriptor<Sample>], _ text: (Sample) -> String) throws {
        let expected = try context.all(Sample.self).sorted(using: sort).map(text)
        #expect(try context.fetch(FetchDescriptor(sortBy: sort)).map(text) == expected)
    }

    @Test func numbersSortLikeFoundation() throws {
        try check(\.number)
        try check(\.ratio)
        try check(\.date)
    }

    @Test func unsignedNumbersSortLikeFoundation() throws { try check(\.big) }

    @Test func optionalsSortLikeFoundation() throws {
        for order in [SortOrder.forward, .reverse] {
            try check([SortDescriptor(\.count, order: order), SortDescriptor(\.number)]) {
                "\($0.count ?? -1) \($0.number)"
            }
            try check([SortDescriptor(\.maybe, order: order), SortDescriptor(\.number)]) {
                "\($0.maybe ?? -1) \($0.number)"
            }
        }
    }

    @Test func textsSortByCharactersOnRequest() throws {
        let sort = [SortDescriptor(\Sample.text, comparator: .lexical), SortDescriptor(\Sample.number)]
        try check(sort) { "\($0.text) \($0.number)" }
    }
}
