import Foundation
import GRDB
import MartletStore
import SwiftData
import Testing

/// A store that starts with a late version understands devices with an early one as well as a migrated store does.
@Suite struct FreshStoreTests {
    enum V1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Thing.self, Maker.self, Note.self] }

        @Model class Thing {
            var name: String
            var colour: String
            var weight: Int
            @Relationship(inverse: \Maker.things) var makers: [Maker] = []
            init(name: String, colour: String, weight: Int) {
                self.name = name
                self.colour = colour
                self.weight = weight
            }
        }

        @Model class Maker {
            var name: String
            var things: [Thing] = []
            init(name: String) { self.name = name }
        }

        @Model class Note {
            @Attribute(.unique) var text: String
            init(text: String) { self.text = text }
        }
    }

    enum V2: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
        static var models: [any PersistentModel.Type] { [Thing.self, Maker.self] }

        @Model class Thing {
            var name: String
            @Attribute(originalName: "colour") var color: String
            @Relationship(originalName: "makers", inverse: \Maker.things) var builders: [Maker] = []
            init(name: String, color: String) {
                self.name = name
                self.color = color
            }
        }

        @Model class Maker {
            var name: String
            var things: [Thing] = []
            init(name: String) { self.name = name }
        }
    }

    enum V3: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(3, 0, 0) }
        static var models: [any PersistentModel.Type] { [Thing.self, Maker.self] }

        @Model class Thing {
            var name: String
            @Attribute(originalName: "color") var tint: String
            @Relationship(inverse: \Maker.things) var builders: [Maker] = []
            init(name: String, tint: String) {
                self.name = name
                self.tint = tint
            }
        }

        @Model class Maker {
            var name: String
            var things: [Thing] = []
            init(name: String) { self.name = name }
        }
    }

    enum Plan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self, V3.self] }
        static var stages: [MigrationStage] {
            [
                .lightweight(fromVersion: V1.self, toVersion: V2.self),
                .lightweight(fromVersion: V2.self, toVersion: V3.self),
            ]
        }
    }

    private let folder = FileManager.default.temporaryDirectory.appending(path: "fresh-\(UUID().uuidString)")

    @discardableResult
    private func open(_ name: String, _ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)?)
        throws -> ModelContainer
    {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return try ModelContainer(
            for: Schema(versionedSchema: version), migrationPlan: plan,
            configurations: ModelConfiguration(url: folder.appending(path: name)))
    }

    /// The columns and the former names of each table, as the store knows them.
    private func tables(_ name: String) throws -> [String] {
        let store = try Store(path: folder.appending(path: name).path)
        defer { try? store.close() }
        let entities = try store.database.read { try Catalog.load($0) }.entities
        return entities.map { entity in
            let columns = entity.columns.map { "\($0.name)<\($0.formerNames.joined(separator: ","))>" }
            return "\(entity.name)<\(entity.formerNames.joined(separator: ","))> "
                + columns.sorted().joined(separator: " ")
        }.sorted()
    }

    @Test func aFreshStoreKnowsTheNamesOfAMigratedStore() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try open("old.store", V1.self, nil)
        try open("old.store", V3.self, Plan.self)
        try open("new.store", V3.self, Plan.self)
        let expected = [
            "Maker<> name<>", "Note<> text<>", "Thing<> name<> tint<colour,color> weight<>",
            "Maker_things<> Maker<> Thing<>",
        ]
        #expect(try tables("old.store") == expected.sorted())
        #expect(
            try tables("new.store").map { $0.replacing("color,colour", with: "colour,color") } == expected.sorted())
    }

    @Test func aFreshStoreSavesModels() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let context = ModelContext(try open("new.store", V3.self, Plan.self))
        let thing = V3.Thing(name: "hat", tint: "red")
        context.insert(thing)
        thing.builders = [V3.Maker(name: "Ann")]
        try context.save()
        let again = ModelContext(try open("new.store", V3.self, Plan.self))
        #expect(
            try again.fetch(FetchDescriptor<V3.Thing>()).map { "\($0.name) \($0.builders.map(\.name))" } == [
                "hat [\"Ann\"]"
            ])
    }

    /// Without a plan, the attributes' own original names are all that is known.
    @Test func aFreshStoreKnowsOriginalNamesWithoutAPlan() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try open("new.store", V2.self, nil)
        #expect(try tables("new.store").contains("Thing<> color<colour> name<>"))
    }

    @Test func laterVersionsMigrateAFreshStore() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let context = ModelContext(try open("new.store", V2.self, Plan.self))
        context.insert(V2.Thing(name: "hat", color: "red"))
        try context.save()
        let again = ModelContext(try open("new.store", V3.self, Plan.self))
        #expect(try again.fetch(FetchDescriptor<V3.Thing>()).map(\.tint) == ["red"])
    }
}
