import Foundation
import MartletStore
import SwiftData
import Synchronization
import Testing

/// What the closures of custom stages may do, and what becomes of it.
struct MigrationStageTests {
    private struct Failure: Error {}

    private func withBoxes(_ body: (MigratedStore) throws -> Void) throws {
        try MigratedStore.with(
            fill: { context in
                let label = BoxV1.Label("fragile")
                for (index, name) in ["a", "b", "b"].enumerated() {
                    let box = BoxV1.Box(name, weight: index, code: "\(index)")
                    context.insert(box)
                    box.label = label
                }
            }, body)
    }

    // MARK: willMigrate

    enum Busy: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxUnique.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxUnique.self,
                    willMigrate: { context in
                        context.author = "cleaner"
                        var descriptor = FetchDescriptor<BoxV1.Box>(
                            predicate: #Predicate { $0.name == "b" }, sortBy: [SortDescriptor(\.weight)])
                        descriptor.propertiesToFetch = [\.name]
                        descriptor.relationshipKeyPathsForPrefetching = [\.label]
                        let boxes = try context.fetch(descriptor)
                        context.delete(boxes[0])
                        try context.save()
                        boxes[1].note = boxes[1].label?.text
                        try context.save()
                        context.insert(BoxV1.Box("new"))
                        // A fetch sees what isn't saved, and leaves nothing behind.
                        #expect(try context.fetchCount(FetchDescriptor<BoxV1.Box>()) == 3)
                        try context.save()
                        #expect(try context.history().suffix(3).map(\.author) == ["cleaner", "cleaner", "cleaner"])
                        context.insert(BoxV1.Box("unsaved"))
                    },
                    didMigrate: { context in
                        context.author = "filler"
                        for box in try context.all(BoxUnique.Box.self) { box.weight += 100 }
                        try context.save()
                    })
            ]
        }
    }

    @Test func closuresFetchInsertUpdateDeleteAndSaveSeveralTimes() throws {
        try withBoxes { store in
            let token = try ModelContext(try store.open(BoxV1.self)).history().last?.token
            try store.use(BoxUnique.self, Busy.self) { context throws in
                let boxes = try context.all(BoxUnique.Box.self)
                #expect(boxes.map(\.name) == ["a", "b", "new"])
                #expect(boxes.map(\.weight) == [100, 102, 100])
                #expect(boxes.map(\.note) == [nil, "fragile", nil])
                let history = try context.history()
                #expect(history.map(\.author) == [nil, "cleaner", "cleaner", "cleaner", "filler"])
                #expect(history.map(\.changes.count) == [4, 1, 1, 1, 3])
                // A token from before is good, and what follows it is the migration.
                let known = try #require(token)
                let after = try context.fetchHistory(
                    HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token > known }))
                #expect(after.count == 4)
            }
            let plain = try Store(path: store.configuration.url.path)
            defer { try? plain.close() }
            let cleaned = try plain.fetchHistory(HistoryQuery(author: .equal("cleaner")))
            #expect(cleaned.first?.context == "migration 1.0.0 to 2.0.0")
        }
    }

    // MARK: Failures

    enum FailsBefore: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxAdded.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxAdded.self,
                    willMigrate: { context in
                        try context.delete(model: BoxV1.Box.self)
                        try context.save()
                        throw Failure()
                    }, didMigrate: nil)
            ]
        }
    }

    enum FailsAfter: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxAdded.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxAdded.self,
                    willMigrate: { context in
                        try context.delete(model: BoxV1.Box.self)
                        try context.save()
                    },
                    didMigrate: { context in
                        context.insert(BoxAdded.Box())
                        try context.save()
                        throw Failure()
                    })
            ]
        }
    }

    /// The first stage is done when the second one fails.
    enum FailsLater: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxRemoved.self, BoxBack.self] }
        static var stages: [MigrationStage] {
            [
                .lightweight(fromVersion: BoxV1.self, toVersion: BoxRemoved.self),
                .custom(
                    fromVersion: BoxRemoved.self, toVersion: BoxBack.self, willMigrate: nil,
                    didMigrate: { _ in throw Failure() }),
            ]
        }
    }

    @Test(arguments: [
        (
            FailsBefore.self as any SchemaMigrationPlan.Type, BoxAdded.self as any VersionedSchema.Type, "willMigrate",
            "1.0.0 to 2.0.0"
        ),
        (FailsAfter.self, BoxAdded.self, "didMigrate", "1.0.0 to 2.0.0"),
        (FailsLater.self, BoxBack.self, "didMigrate", "2.0.0 to 3.0.0"),
    ])
    func closureThatThrowsLeavesTheStoreAsItWas(
        plan: any SchemaMigrationPlan.Type, version: any VersionedSchema.Type, closure: String, stage: String
    ) throws {
        try withBoxes { store in
            let error = try store.expectRefusal(version, plan, .migrationFailed, closure, stage, "nothing was changed")
            #expect(error?.underlyingError is Failure)
            // Foreign keys are enforced again, and capture goes on.
            try store.use(BoxV1.self) { context throws in
                context.insert(BoxV1.Box("after"))
                try context.save()
                #expect(try context.history().last?.changes.count == 1)
            }
        }
    }

    enum Swallows: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxUnique.self, BoxBack.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxUnique.self, toVersion: BoxBack.self,
                    willMigrate: { context in
                        let boxes = try? context.all(BoxUnique.Box.self)
                        // The first is written before the second one finds the other's values taken.
                        boxes?[0].weight = 50
                        boxes?[1].name = "a"
                        boxes?[1].note = "n"
                        try? context.save()
                    }, didMigrate: nil)
            ]
        }
    }

    @Test func saveThatFailedAndWasSwallowedLeavesNothingBehind() throws {
        try MigratedStore.with(
            BoxUnique.self,
            fill: { context in
                for name in ["a", "b"] {
                    let box = BoxUnique.Box()
                    box.name = name
                    box.note = "n"
                    context.insert(box)
                }
            }
        ) { store in
            try store.use(BoxBack.self, Swallows.self) { context throws in
                #expect(try context.all(BoxBack.Box.self).map(\.weight) == [0, 0])
                #expect(try context.history().count == 1)
            }
        }
    }

    // MARK: Deletions in a stage

    enum Unlabels: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxOptional.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxOptional.self,
                    willMigrate: { context in
                        try context.delete(model: BoxV1.Label.self)
                        try context.save()
                    }, didMigrate: nil)
            ]
        }
    }

    @Test func deletingInAStageTakesReferencesAway() throws {
        try withBoxes { store in
            try store.use(BoxOptional.self, Unlabels.self) { context throws in
                #expect(try context.all(BoxOptional.Box.self).map { $0.label?.text } == [nil, nil, nil])
                // The deletion, and what it did to the boxes.
                #expect(try context.history().last?.changes.count == 4)
            }
            #expect(try store.lines("SELECT label FROM Box") == ["NULL", "NULL", "NULL"])
            #expect(try store.lines("PRAGMA foreign_key_check").isEmpty)
        }
    }

    // MARK: Types

    private static func plan(_ to: any VersionedSchema.Type, _ fix: @escaping @Sendable (BoxV1.Box) -> Void)
        -> MigrationStage
    {
        .custom(
            fromVersion: BoxV1.self, toVersion: to,
            willMigrate: { context in
                for box in try context.all(BoxV1.Box.self) { fix(box) }
                try context.save()
            }, didMigrate: nil)
    }

    enum ToText: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxText.self] }
        static var stages: [MigrationStage] { [plan(BoxText.self) { _ in }] }
    }

    enum ToNumber: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxNumber.self] }
        static var stages: [MigrationStage] { [plan(BoxNumber.self) { _ in }] }
    }

    enum ToColour: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxColour.self] }
        static var stages: [MigrationStage] { [plan(BoxColour.self) { $0.code = "green" }] }
    }

    enum ToRequired: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxRequiredWithoutDefault.self] }
        static var stages: [MigrationStage] {
            [plan(BoxRequiredWithoutDefault.self) { if $0.name == "b" { $0.note = "filled" } }]
        }
    }

    @Test func customStageConvertsWhatCanBeConverted() throws {
        try withBoxes { store in
            try store.use(BoxText.self, ToText.self) { context throws in
                #expect(try context.all(BoxText.Box.self).map(\.weight) == ["0", "1", "2"])
            }
        }
        try withBoxes { store in
            try store.use(BoxNumber.self, ToNumber.self) { context throws in
                #expect(try context.all(BoxNumber.Box.self).map(\.code) == [0, 1, 2])
            }
        }
        try withBoxes { store in
            try store.use(BoxColour.self, ToColour.self) { context throws in
                #expect(try context.all(BoxColour.Box.self).map(\.code) == [.green, .green, .green])
            }
        }
    }

    @Test func valuesThatCannotBeConvertedAreCounted() throws {
        try withBoxes { store in
            try store.use(BoxV1.self) { try $0.all(BoxV1.Box.self)[1].code = "x1" }
            try store.expectRefusal(
                BoxNumber.self, ToNumber.self, .missingMigration, "Box.code", "1 models", "willMigrate")
            try store.expectRefusal(
                BoxRequiredWithoutDefault.self, ToRequired.self, .missingMigration, "Box.note", "1 models have no value"
            )
            try store.use(BoxV1.self) { try $0.all(BoxV1.Box.self)[0].note = "here" }
            try store.use(BoxRequiredWithoutDefault.self, ToRequired.self) { context throws in
                #expect(
                    try context.all(BoxRequiredWithoutDefault.Box.self).map(\.note) == ["here", "filled", "filled"])
            }
        }
    }

    // MARK: Contexts that escape

    enum Leaks: SchemaMigrationPlan {
        static let kept = Mutex<Kept?>(nil)
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxAdded.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxAdded.self,
                    willMigrate: { context in
                        let box = try context.all(BoxV1.Box.self)[0]
                        kept.withLock { $0 = Kept(context: context, box: box) }
                        // On another thread it is refused, and no trap.
                        nonisolated(unsafe) let context = context
                        let failure = Mutex<SwiftDataError?>(nil)
                        let thread = Thread {
                            do {
                                _ = try context.all(BoxV1.Label.self)
                            } catch {
                                failure.withLock { $0 = error as? SwiftDataError }
                            }
                            done.signal()
                        }
                        thread.start()
                        #expect(done.wait(timeout: .now() + 60) == .success)
                        #expect(failure.withLock { $0 } == .configuration)
                    }, didMigrate: nil)
            ]
        }
        static let done = DispatchSemaphore(value: 0)
    }

    /// Safe because the test hands it from one thread to the same one.
    struct Kept: @unchecked Sendable {
        let context: ModelContext
        let box: BoxV1.Box
    }

    @Test func contextThatOutlivesItsStageIsRefused() throws {
        try withBoxes { store in
            let container = try store.open(BoxAdded.self, Leaks.self)
            let kept = try #require(Leaks.kept.withLock { $0 })
            #expect(kept.box.name == "a")
            #expect(kept.box.label == nil)
            #expect(throws: SwiftDataError.configuration) { try kept.context.all(BoxV1.Box.self) }
            kept.box.name = "z"
            let refusal = #expect(throws: SwiftDataError.saveNotAllowed) { try kept.context.save() }
            #expect(refusal?.underlyingError as? SwiftDataError == .configuration)
            Leaks.kept.withLock { $0 = nil }
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<BoxAdded.Box>()) == 3)
        }
    }
}
