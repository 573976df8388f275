import Foundation
import SwiftData
import Testing

/// Models in the forms that public projects use.
struct PublicModelTests {
    private let container: ModelContainer
    private let context: ModelContext

    init() throws {
        container = try ModelContainer(
            for: Guest.self, Room.self, Key.self, Visit.self, Talk.self, Animal.self, Dog.self, Passport.self,
            Watched.self, Place.self, Case.self, Document.self,
            configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
    }

    /// The only model of its kind, as another context reads it.
    private func saved<M: PersistentModel>(_ model: M) throws -> M {
        context.insert(model)
        try context.save()
        let found = try ModelContext(container).fetch(FetchDescriptor<M>())
        #expect(found.count == 1)
        return try #require(found.first)
    }

    @Test func aProtocolMayStandFirst() throws {
        #expect(try saved(Guest(name: "Ada")).name == "Ada")
        #expect((try saved(Talk(name: "Bo", title: "Sync")) as any NamedAndTitled).title == "Sync")
    }

    @Test func attributesAndQualifiedNamesMayStandFirst() throws {
        #expect(try saved(Room(number: 7)).number == 7)
        let id = UUID()
        #expect(try saved(Key(id: id)).id == id)
    }

    @Test func aProtocolThatInheritsPersistentModelMayStandFirst() throws {
        let stamp = Date(timeIntervalSince1970: 1_000_000)
        let visit: any Stamped = try saved(Visit(stamp: stamp))
        #expect(visit.stamp == stamp)
    }

    @Test func theCompilerFindsTheSuperclass() throws {
        let stamp = Date(timeIntervalSince1970: 2_000_000)
        let dog = Dog(name: "Rex", stamp: stamp)
        dog.tricks = ["sit"]
        let found = try saved(dog)
        #expect(found.name == "Rex" && found.stamp == stamp && found.tricks == ["sit"])
        #expect(try context.fetch(FetchDescriptor<Animal>()).map(\.name) == ["Rex"])
    }

    @Test func aSuperclassThatIsNoModelIsReported() throws {
        let error = #expect(throws: SwiftDataError.self) {
            try ModelContainer(for: Derived.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        }
        #expect(error == .invalidSchema)
        #expect(error?.message.contains("Base") == true)
        #expect(error?.message.contains("Derived") == true)
    }

    @Test func constantsAreStoredAndReadBack() throws {
        let id = UUID()
        let issued = Date(timeIntervalSince1970: 3_000_000)
        let found = try saved(Passport(id: id, country: "NO", issued: issued, holder: Guest(name: "Ada")))
        #expect(found.id == id && found.country == "NO" && found.issued == issued && found.holder?.name == "Ada")
        #expect(try context.fetchCount(FetchDescriptor<Passport>(predicate: #Predicate { $0.id == id })) == 1)
        let later = ModelContext(container)
        later.insert(Passport(id: id, country: "SE"))
        try later.save()
        #expect(try ModelContext(container).fetch(FetchDescriptor<Passport>()).map(\.country) == ["SE"])
    }

    @Test func observersOfStoredPropertiesAreNotCalled() throws {
        let watched = Watched()
        watched.count = 3
        watched.name = "x"
        #expect(try saved(watched).count == 3)
        #expect(Watched.calls == 0)
    }

    @Test func theSchemaHasIndexesOfBothKinds() throws {
        let entity = try #require(Schema([Place.self]).entitiesByName["Place"])
        #expect(entity.indices == [["name"], ["latitude", "longitude"]])
        #expect(entity.uniquenessConstraints == [["name", "latitude"]])
        let index = Schema.Index<Place>(.binary([\.name]), .rtree([\.latitude]))
        #expect(index.indices.count == 2)
        #expect(Schema.Unique<Place>([\.name], [\.latitude]).constraints == [[\Place.name], [\Place.latitude]])
    }

    @Test func severalRelationshipsMayNameTheSameInverse() throws {
        let folder = Case()
        context.insert(folder)
        let (first, second) = (Document(title: "unread"), Document(title: "other"))
        folder.unread?.append(first)
        folder.other?.append(second)
        try context.save()
        let found = try #require(try ModelContext(container).fetch(FetchDescriptor<Case>()).first)
        #expect(found.unread?.map(\.title) == ["unread"])
        #expect(found.other?.map(\.title) == ["other"])
        #expect(found.unread?.first?.owner === found)
        #expect(found.other?.first?.owner == nil)
    }

    @Test func aConfigurationWithoutArgumentsIsTheDefault() {
        let configuration = ModelConfiguration()
        #expect(configuration.name == "default" && !configuration.isStoredInMemoryOnly)
        #expect(configuration.debugDescription.contains("default.store"))
    }

    @Test func aContextEqualsOnlyItself() throws {
        let model = Guest(name: "Ada")
        context.insert(model)
        #expect(model.modelContext == context)
        #expect(ModelContext(container) != context)
        #expect(context.debugDescription.contains("inserted: 1"))
    }

    @Test func identifiersAreTemporaryUntilTheSave() throws {
        let model = Guest(name: "Ada")
        context.insert(model)
        #expect(model.persistentModelID.isTemporary)
        try context.save()
        #expect(!model.persistentModelID.isTemporary)
    }

    @Test func propertyMetadataHasTheLabelsThatProgramsReflectOn() throws {
        let property = try #require(Passport.schemaMetadata.first)
        let children = Dictionary(
            uniqueKeysWithValues: Mirror(reflecting: property).children.map { ($0.label ?? "", $0.value) })
        #expect(children["name"] as? String == "id")
        #expect(children["keypath"] as? AnyKeyPath == \Passport.id)
        #expect((children["metadata"] as? Schema.Attribute)?.options.contains(.unique) == true)
    }

    @Test func theSaveNotificationHasArraysAndSets() async throws {
        let model = Guest(name: "Ada")
        context.insert(model)
        nonisolated(unsafe) var userInfo: [AnyHashable: Any] = [:]
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave, object: context, queue: nil
        ) { userInfo = $0.userInfo ?? [:] }
        defer { NotificationCenter.default.removeObserver(observer) }
        try context.save()
        typealias Key = ModelContext.NotificationKey
        let id = model.persistentModelID
        #expect(userInfo[Key.insertedIdentifiers.rawValue] as? [PersistentIdentifier] == [id])
        #expect(userInfo[Key.insertedIdentifiers] as? Set<PersistentIdentifier> == [id])
        #expect(userInfo[Key.updatedIdentifiers.rawValue] as? [PersistentIdentifier] == [])
    }
}
