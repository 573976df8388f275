import Foundation
import SwiftData
import Synchronization
import Testing

@ModelActor
private actor Counter {
    /// Adds `count` tags to the sample, each in a transaction of its own.
    func add(_ count: Int, to id: PersistentIdentifier) throws {
        for _ in 0..<count {
            try modelContext.transaction {
                guard let sample = self[id, as: Sample.self] else { return }
                sample.tags.append(Tag(UUID().uuidString))
            }
        }
    }

    func readAll(until isDone: @Sendable () -> Bool) throws -> Bool {
        var last = 0
        repeat {
            let samples = try modelContext.fetch(FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.number)]))
            // Saves are atomic for readers: each adds two samples, one with an owner.
            guard samples.count % 2 == 0, samples.count >= last else { return false }
            guard samples.filter({ $0.owner != nil }).count == samples.count / 2 else { return false }
            last = samples.count
        } while !isDone()
        return true
    }

    func writePairs(_ count: Int) throws {
        for number in 0..<count {
            modelContext.insert(Sample(number, owner: Owner("\(number)")))
            modelContext.insert(Sample(number))
            try modelContext.save()
        }
    }

    func renameTag(to name: String, rounds: Int) throws {
        for _ in 0..<rounds {
            modelContext.insert(Tag(name))
            try modelContext.save()
        }
    }

    func deleteHalf() throws -> Int {
        let all = try modelContext.fetch(FetchDescriptor<Sample>())
        for sample in all where sample.number % 2 == 0 { modelContext.delete(sample) }
        try modelContext.save()
        return try modelContext.fetchCount(FetchDescriptor<Sample>())
    }

    func rollBackAfter(_ number: Int) -> Bool {
        modelContext.insert(Sample(number))
        modelContext.rollback()
        return !modelContext.hasChanges
    }
}

private final class End: Sendable {
    private let flag = Atomic<Bool>(false)
    var isReached: Bool { flag.load(ordering: .relaxed) }
    func reach() { flag.store(true, ordering: .relaxed) }
}

/// Many concurrent background actors, each with a context of its own, on one container.
@Suite(.timeLimit(.minutes(5)))
struct ManyActorsTests {
    private func withContainer(_ body: (ModelContainer) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "models-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(try sampleContainer(.init(url: folder.appending(path: "c.store"))))
    }

    @Test func concurrentlyAddedLinksOfOneModelAreAllKept() async throws {
        try await withContainer { container in
            let context = ModelContext(container)
            let sample = context.inserting(Sample(1))
            try context.save()
            let id = sample.persistentModelID
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 { group.addTask { try await Counter(modelContainer: container).add(10, to: id) } }
                try await group.waitForAll()
            }
            #expect(try container.reader().all(Sample.self).first?.tags.count == 60)
        }
    }

    @Test func readersSeeWholeSaves() async throws {
        try await withContainer { container in
            let end = End()
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        try await Counter(modelContainer: container).readAll { end.isReached }
                    }
                }
                defer { end.reach() }
                try await Counter(modelContainer: container).writePairs(40)
                end.reach()
                for try await isWhole in group { #expect(isWhole) }
            }
            #expect(try container.reader().fetchCount(FetchDescriptor<Sample>()) == 80)
        }
    }

    @Test func concurrentInsertsOfAUniqueValueMakeOneModel() async throws {
        try await withContainer { container in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 {
                    group.addTask { try await Counter(modelContainer: container).renameTag(to: "x", rounds: 8) }
                }
                try await group.waitForAll()
            }
            #expect(try container.reader().all(Tag.self).map(\.name) == ["x"])
        }
    }

    @Test func severalActorsMayDeleteTheSameModels() async throws {
        try await withContainer { container in
            let context = ModelContext(container)
            for number in 0..<100 { context.insert(Sample(number)) }
            try context.save()
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<5 { group.addTask { try await Counter(modelContainer: container).deleteHalf() } }
                for try await left in group { #expect(left == 50) }
            }
        }
    }

    @Test func aRollbackOfOneActorLeavesTheOthers() async throws {
        try await withContainer { container in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<8 {
                    let counter = Counter(modelContainer: container)
                    if number % 2 == 0 {
                        group.addTask { await counter.rollBackAfter(number) }
                    } else {
                        group.addTask {
                            try await counter.writePairs(5)
                            return true
                        }
                    }
                }
                for try await isDone in group { #expect(isDone) }
            }
            #expect(try container.reader().fetchCount(FetchDescriptor<Sample>()) == 40)
        }
    }
}
