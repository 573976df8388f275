import Foundation
import SwiftData
import Testing

/// What is checked of a plan, and which of its stages are run.
struct MigrationPlanTests {
    enum V1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Thing.self] }
        @Model final class Thing {
            var name: String
            init(_ name: String) { self.name = name }
        }
    }

    enum V2: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
        static var models: [any PersistentModel.Type] { [Thing.self] }
        @Model final class Thing {
            var name: String
            var size: Int = 1
            init(_ name: String) { self.name = name }
        }
    }

    enum V3: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(3, 0, 0) }
        static var models: [any PersistentModel.Type] { [Thing.self] }
        @Model final class Thing {
            var name: String
            @Attribute(originalName: "size") var length: Int = 1
            init(_ name: String) { self.name = name }
        }
    }

    private static let one = MigrationStage.lightweight(fromVersion: V1.self, toVersion: V2.self)
    private static let two = MigrationStage.lightweight(fromVersion: V2.self, toVersion: V3.self)

    enum Whole: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self, V3.self] }
        static var stages: [MigrationStage] { [one, two] }
    }

    enum Unordered: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V3.self, V2.self] }
        static var stages: [MigrationStage] { [one, two] }
    }

    enum Twice: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self, V2.self, V3.self] }
        static var stages: [MigrationStage] { [one, two] }
    }

    enum Gap: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self, V3.self] }
        static var stages: [MigrationStage] { [one] }
    }

    enum Foreign: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V3.self] }
        static var stages: [MigrationStage] {
            [.lightweight(fromVersion: V1.self, toVersion: V2.self)]
        }
    }

    enum Backwards: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self, V3.self] }
        static var stages: [MigrationStage] {
            [.lightweight(fromVersion: V2.self, toVersion: V1.self), two]
        }
    }

    enum Forked: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self, V3.self] }
        static var stages: [MigrationStage] {
            [one, .lightweight(fromVersion: V1.self, toVersion: V3.self), two]
        }
    }

    enum Empty: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [] }
        static var stages: [MigrationStage] { [] }
    }

    enum Late: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V2.self, V3.self] }
        static var stages: [MigrationStage] { [two] }
    }

    /// Version 1 with a model that it didn't have.
    enum OtherV1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Thing.self] }
        @Model final class Thing {
            var name: String
            var colour: String?
            init(_ name: String) { self.name = name }
        }
    }

    enum Rewritten: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [OtherV1.self, V2.self, V3.self] }
        static var stages: [MigrationStage] {
            [.lightweight(fromVersion: OtherV1.self, toVersion: V2.self), two]
        }
    }

    private func withThing(_ body: (MigratedStore) throws -> Void) throws {
        try MigratedStore.with(V1.self, fill: { $0.insert(V1.Thing("a")) }, body)
    }

    @Test func allStagesRunInOrder() throws {
        try withThing { store in
            try store.use(V3.self, Whole.self) { context throws in
                #expect(try context.all(V3.Thing.self).map(\.length) == [1])
            }
            #expect(try store.lines("SELECT name FROM pragma_table_info('Thing')") == ["_id", "name", "length"])
            try store.use(V3.self, Whole.self) { _ in }
        }
    }

    @Test func migratesAsFarAsTheContainersVersion() throws {
        try withThing { store in
            try store.use(V2.self, Whole.self) { context throws in
                #expect(try context.all(V2.Thing.self).map(\.size) == [1])
            }
            try store.use(V3.self, Whole.self) { _ in }
        }
    }

    @Test func modelsThatAreNamedWithoutAVersionHaveThePlans() throws {
        try withThing { store in
            let container = try ModelContainer(
                for: V3.Thing.self, migrationPlan: Whole.self, configurations: store.configuration)
            #expect(try ModelContext(container).all(V3.Thing.self).map(\.length) == [1])
            try store.use(V3.self, Whole.self) { _ in }
        }
    }

    /// Two models that have nothing to do with each other, in two versions.
    enum Pair1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [V1.Thing.self, Part.self] }
        @Model final class Part {
            var size: Int = 1
            init() {}
        }
    }

    enum Pair2: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
        static var models: [any PersistentModel.Type] { [V2.Thing.self, Part.self] }
        @Model final class Part {
            var size: Double = 1
            init() {}
        }
    }

    enum Pairs: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [Pair1.self, Pair2.self] }
        static var stages: [MigrationStage] { [.lightweight(fromVersion: Pair1.self, toVersion: Pair2.self)] }
    }

    @Test func eachStoreOfAContainerMigratesItsPart() throws {
        try withTemporaryFolder { folder in
            func open(_ version: any VersionedSchema.Type, _ things: any PersistentModel.Type) throws -> ModelContext {
                let first = ModelConfiguration(
                    "things", schema: Schema(things), url: folder.appending(path: "things.store"))
                let second = ModelConfiguration("parts", url: folder.appending(path: "parts.store"))
                return ModelContext(
                    try ModelContainer(
                        for: Schema(versionedSchema: version), migrationPlan: Pairs.self,
                        configurations: [first, second]))
            }
            do {
                let context = try open(Pair1.self, V1.Thing.self)
                context.insert(V1.Thing("a"))
                context.insert(Pair1.Part())
                try context.save()
            }
            let context = try open(Pair2.self, V2.Thing.self)
            #expect(try context.all(V2.Thing.self).map(\.size) == [1])
            #expect(try context.all(Pair2.Part.self).map(\.size) == [1.0])
        }
    }

    @Test(arguments: [
        (Unordered.self as any SchemaMigrationPlan.Type, SwiftDataError.invalidSchema, "2.0.0 comes after 3.0.0"),
        (Twice.self, .invalidSchema, "version 2.0.0"), (Gap.self, .missingMigration, "no stage from 2.0.0"),
        (Foreign.self, .invalidSchema, "no schema 2.0.0"), (Backwards.self, .invalidSchema, "back to 1.0.0"),
        (Forked.self, .invalidSchema, "Two stages start at 1.0.0"), (Empty.self, .invalidSchema, "no schemas"),
        (Late.self, .incompatibleStore, "The store has version 1.0.0"),
        (Rewritten.self, .incompatibleStore, "Thing.colour"),
    ])
    func plansThatCannotBeFollowedAreRefused(
        plan: any SchemaMigrationPlan.Type, error: SwiftDataError, words: String
    ) throws {
        try withThing { store in
            try store.expectRefusal(V3.self, plan, error, words, String(describing: plan))
        }
    }

    @Test func modelsThatAreNotThePlansAreRefused() throws {
        try withThing { store in
            try store.expectRefusal(
                OtherV1.self, Whole.self, .invalidSchema, "Thing.colour", "Schema(versionedSchema:)")
        }
    }

    // MARK: Stores from the future

    /// The store's files, byte for byte.
    private func bytes(_ store: MigratedStore) throws -> [String: Data] {
        let path = store.configuration.url.path
        var found: [String: Data] = [:]
        for file in [path, path + "-wal"] { found[file] = FileManager.default.contents(atPath: file) }
        // An empty log is as good as none.
        return found.filter { !$0.value.isEmpty }
    }

    @Test(arguments: [true, false])
    func storeOfANewerVersionIsNotChangedByOneByte(hasPlan: Bool) throws {
        try withThing { store in
            try store.use(V3.self, Whole.self) { _ in }
            // Another program's rows wait to be sealed, which opening does.
            try store.run("INSERT INTO Thing(name) VALUES ('b')")
            let before = try bytes(store)
            let thrown = #expect(throws: SwiftDataError.self) {
                try store.open(V1.self, hasPlan ? Whole.self : nil)
            }
            #expect(thrown == .incompatibleStore)
            #expect(thrown?.message.contains("3.0.0") == true)
            #expect(try bytes(store) == before)
        }
    }

    @Test func storeThatIsReadOnlyIsNotMigrated() throws {
        try withThing { store in
            let configuration = ModelConfiguration(url: store.configuration.url, allowsSave: false)
            let thrown = #expect(throws: SwiftDataError.self) {
                try ModelContainer(
                    for: Schema(versionedSchema: V3.self), migrationPlan: Whole.self, configurations: configuration)
            }
            #expect(thrown == .incompatibleStore)
        }
    }
}
