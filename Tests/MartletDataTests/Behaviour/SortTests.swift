import Foundation
import SwiftData
import Testing

/// The order of texts, and of equal models.
struct SortTests {
    let context: ModelContext

    init() throws { context = ModelContext(try sampleContainer()) }

    private func insert(_ texts: [String]) throws {
        for (number, text) in texts.enumerated() { context.insert(Sample(number, text: text)) }
        try context.save()
    }

    private func texts(_ sort: SortDescriptor<Sample>) throws -> [String] {
        try context.fetch(FetchDescriptor(sortBy: [sort])).map(\.text)
    }

    @Test func textsSortLikeFoundationByDefault() throws {
        let all = ["file10", "file2", "Zoe", "émile", "Emil", "adam", "Öde", "👩‍👩‍👧", "", "10", "9", "z", "É", "e"]
        try insert(all)
        let sort = SortDescriptor(\Sample.text)
        #expect(try texts(sort) == all.map { Sample(0, text: $0) }.sorted(using: sort).map(\.text))
        let reverse = SortDescriptor(\Sample.text, order: .reverse)
        #expect(try texts(reverse) == all.map { Sample(0, text: $0) }.sorted(using: reverse).map(\.text))
    }

    @Test func equalModelsHaveTheOrderOfTheirFirstSave() throws {
        for number in [3, 1, 2] {
            context.insert(Sample(number, text: "same"))
            try context.save()
        }
        #expect(try context.fetch(FetchDescriptor(sortBy: [SortDescriptor(\Sample.text)])).map(\.number) == [3, 1, 2])
        #expect(try context.all(Sample.self).map(\.number) == [3, 1, 2])
    }

    @Test func laterDescriptorsOrderEqualModels() throws {
        for (number, text) in [(2, "b"), (1, "a"), (1, "b"), (2, "a")] { context.insert(Sample(number, text: text)) }
        let sort = [SortDescriptor(\Sample.text, order: .reverse), SortDescriptor(\Sample.number)]
        #expect(
            try context.fetch(FetchDescriptor(sortBy: sort)).map { "\($0.text)\($0.number)" } == [
                "b1", "b2", "a1", "a2",
            ])
    }

    @Test func aLimitBeyondTheEndReturnsTheRest() throws {
        try insert(["a", "b", "c"])
        var descriptor = FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)])
        descriptor.fetchOffset = 2
        descriptor.fetchLimit = 10
        #expect(try context.fetch(descriptor).map(\.number) == [2])
        #expect(try context.fetchCount(descriptor) == 1)
        descriptor.fetchOffset = 7
        #expect(try context.fetch(descriptor).isEmpty)
        #expect(try context.fetchCount(descriptor) == 0)
    }

    @Test func anOffsetWithoutALimitSkipsTheFirst() throws {
        try insert(["a", "b", "c"])
        var descriptor = FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)])
        descriptor.fetchOffset = 1
        #expect(try context.fetch(descriptor).map(\.number) == [1, 2])
        #expect(try context.fetchIdentifiers(descriptor).count == 2)
    }
}
