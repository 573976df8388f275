import Foundation
import Observation
import SwiftData
import Testing

// Handwritten models, in the form in which a SwiftData macro would write them.

class Shelf {
    @Transient private var _$backingData: any SwiftData.BackingData<Shelf> = Shelf.createBackingData()

    var label: String {
        @storageRestrictions(accesses: _$backingData, initializes: _label)
        init(initialValue) {
            _$backingData.setValue(forKey: \.label, to: initialValue)
            _label = _SwiftDataNoType()
        }
        get {
            _$observationRegistrar.access(self, keyPath: \.label)
            return self.getValue(forKey: \.label)
        }
        set {
            _$observationRegistrar.withMutation(of: self, keyPath: \.label) {
                self.setValue(forKey: \.label, to: newValue)
            }
        }
    }
    private var _label: _SwiftDataNoType = .init()

    /// With a default value, which isn't what a fetched model has.
    var kind: Kind = .wood {
        @storageRestrictions(accesses: _$backingData, initializes: _kind)
        init(initialValue) {
            _$backingData.setValue(forKey: \.kind, to: initialValue)
            _kind = _SwiftDataNoType()
        }
        get { self.getValue(forKey: \.kind) }
        set { self.setValue(forKey: \.kind, to: newValue) }
    }
    private var _kind: _SwiftDataNoType = .init()

    var place: Place? {
        get { self.getValue(forKey: \.place) }
        set { self.setValue(forKey: \.place, to: newValue) }
    }

    var scale: Scale {
        get { self.getTransformableValue(forKey: \.scale) }
        set { self.setTransformableValue(forKey: \.scale, to: newValue) }
    }

    var books: [Volume] {
        get { self.getValue(forKey: \.books) }
        set { self.setValue(forKey: \.books, to: newValue) }
    }

    init(label: String) {
        self.label = label
        scale = Scale(steps: 1)
    }

    required init(backingData: any SwiftData.BackingData<Shelf>) {
        _label = _SwiftDataNoType()
        self.persistentBackingData = backingData
    }

    var persistentBackingData: any SwiftData.BackingData<Shelf> {
        get { _$backingData }
        set { _$backingData = newValue }
    }

    static var schemaMetadata: [SwiftData.Schema.PropertyMetadata] {
        [
            SwiftData.Schema.PropertyMetadata(
                name: "label", keypath: \Shelf.label, metadata: SwiftData.Schema.Attribute(.unique)),
            SwiftData.Schema.PropertyMetadata(name: "kind", keypath: \Shelf.kind, defaultValue: Kind.wood),
            SwiftData.Schema.PropertyMetadata(name: "place", keypath: \Shelf.place),
            SwiftData.Schema.PropertyMetadata(
                name: "scale", keypath: \Shelf.scale,
                metadata: SwiftData.Schema.Attribute(.transformable(by: ScaleTransformer.self))),
            SwiftData.Schema.PropertyMetadata(
                name: "books", keypath: \Shelf.books,
                metadata: SwiftData.Schema.Relationship(deleteRule: .cascade, inverse: \Volume.shelf)),
        ]
    }

    private let _$observationRegistrar = Observation.ObservationRegistrar()
    struct _SwiftDataNoType {}
    enum Kind: String, Codable, CaseIterable { case wood, steel }
    struct Place: Codable, Equatable {
        var room: String
        var row: Int
    }
}

extension Shelf: SwiftData.PersistentModel {}
extension Shelf: Observation.Observable {}

/// Not Codable.
struct Scale: Equatable {
    var steps: Int
}

final class ScaleTransformer: ValueTransformer {
    override class func allowsReverseTransformation() -> Bool { true }
    override func transformedValue(_ value: Any?) -> Any? { (value as? Scale).map { Data([UInt8($0.steps)]) } }
    override func reverseTransformedValue(_ value: Any?) -> Any? {
        (value as? Data)?.first.map { Scale(steps: Int($0)) }
    }
}

@Model
class Volume {
    var title: String
    var shelf: Shelf?

    init(title: String, shelf: Shelf? = nil) {
        self.title = title
        self.shelf = shelf
    }
}

@Model
final class Atlas: Volume {
    var speed = 33
    var tags: [String] = []

    init(title: String) { super.init(title: title) }
}

/// Like the function of a library that fills any model from JSON.
func assign<M: PersistentModel, V: Codable>(_ value: V, to keyPath: KeyPath<M, V>, of model: M) -> V {
    model.setValue(forKey: keyPath, to: value)
    return model.getValue(forKey: keyPath)
}

struct HandWrittenModelTests {
    private func container(_ url: URL? = nil) throws -> ModelContainer {
        try ModelContainer(
            for: Shelf.self, Atlas.self,
            configurations: url.map { ModelConfiguration(url: $0) } ?? ModelConfiguration(isStoredInMemoryOnly: true))
    }

    @Test func modelsWithoutTheMacroAreStored() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "shelves.store")
        do {
            let context = ModelContext(try container(file))
            let shelf = Shelf(label: "A")
            shelf.kind = .steel
            shelf.place = .init(room: "attic", row: 2)
            shelf.scale = Scale(steps: 7)
            let book = Volume(title: "Moby-Dick", shelf: shelf)
            context.insert(book)
            #expect(shelf.modelContext == context)
            #expect(shelf.books.map(\.title) == ["Moby-Dick"])
            try context.save()
        }
        let context = ModelContext(try container(file))
        let shelf = try #require(
            try context.fetch(FetchDescriptor<Shelf>(predicate: #Predicate { $0.label == "A" })).first)
        #expect(shelf.kind == .steel)
        #expect(!shelf.hasChanges)
        #expect(shelf.place == .init(room: "attic", row: 2))
        #expect(shelf.scale == Scale(steps: 7))
        #expect(shelf.books.map(\.title) == ["Moby-Dick"])
        shelf.place = nil
        shelf.books.append(Volume(title: "Emma"))
        #expect(shelf.hasChanges)
        try context.save()
        let other = ModelContext(context.container)
        #expect(try other.fetch(FetchDescriptor<Shelf>()).map(\.place) == [nil])
        let emma = try other.fetch(FetchDescriptor<Volume>(predicate: #Predicate { $0.shelf?.label == "A" }))
        #expect(Set(emma.map(\.title)) == ["Moby-Dick", "Emma"])
        try other.delete(model: Shelf.self)
        try other.save()
        #expect(try other.fetchCount(FetchDescriptor<Volume>()) == 0)
    }

    @Test func aUniqueAttributeWithoutTheMacroUpdatesTheRow() throws {
        let context = ModelContext(try container())
        for kind in [Shelf.Kind.wood, .steel] {
            let shelf = Shelf(label: "A")
            shelf.kind = kind
            context.insert(shelf)
            try context.save()
        }
        #expect(try context.fetch(FetchDescriptor<Shelf>()).map(\.kind) == [.steel])
    }

    @Test func keyPathsReadAndWriteValuesOfAnyModel() throws {
        let context = ModelContext(try container())
        let atlas = Atlas(title: "World")
        #expect(atlas.getValue(forKey: \.speed) == 33)
        #expect(assign(["maps"], to: \Atlas.tags, of: atlas) == ["maps"])
        #expect(assign("Sea", to: \Volume.title, of: atlas) == "Sea")
        #expect(atlas.title == "Sea")
        context.insert(atlas)
        let shelf = Shelf(label: "B")
        atlas.setValue(forKey: \.shelf, to: shelf)
        #expect(shelf.books.map(\.title) == ["Sea"])
        #expect(shelf.modelContext == context)
        try context.save()
        #expect(assign(45, to: \Atlas.speed, of: atlas) == 45)
        #expect(context.changedModelsArray.map(\.persistentModelID) == [atlas.persistentModelID])
        try context.save()
        let other = ModelContext(context.container)
        let found = try #require(try other.fetch(FetchDescriptor<Atlas>()).first)
        #expect(found.getValue(forKey: \.speed) == 45)
        #expect(found.getValue(forKey: \.tags) == ["maps"])
        #expect(found.getValue(forKey: \.shelf)?.label == "B")
        #expect(found.getValue(forKey: \.shelf)?.getValue(forKey: \.books).count == 1)
    }

    @Test func aModelIsCreatedFromBackingData() throws {
        let context = ModelContext(try container())
        let data: any BackingData<Volume> = Volume.createBackingData()
        data.setValue(forKey: \.title, to: "Persuasion")
        let book = Volume(backingData: data)
        #expect(book.title == "Persuasion")
        context.insert(book)
        try context.save()
        #expect(book.persistentBackingData.persistentModelID == book.persistentModelID)
        #expect(book.persistentBackingData.getValue(forKey: \.title) == "Persuasion")
        var related: [PersistentIdentifier: any BackingData] = [:]
        let snapshot = DefaultSnapshot(from: book.persistentBackingData, relatedBackingDatas: &related)
        #expect(snapshot.persistentIdentifier == book.persistentModelID)
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(snapshot)) as? [String: Any]
        #expect(json?["title"] as? String == "Persuasion")
    }

    @Test func anUnstorablePropertyIsReported() throws {
        #expect {
            try ModelContainer(for: Bin.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        } throws: { error in
            "\(error)".contains("Bin.scale: Scale can't be stored") && SwiftDataError.invalidSchema ~= error
        }
        #expect {
            try ModelContainer(for: Box.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        } throws: {
            "\($0)".contains("Box.size: Its default value can't be stored: The value has type String, not Int.")
        }
    }
}

private final class Bin: PersistentModel {
    var persistentBackingData: any BackingData<Bin>
    init(backingData: any BackingData<Bin>) { persistentBackingData = backingData }
    var scale: Scale { Scale(steps: 0) }
    static var schemaMetadata: [Schema.PropertyMetadata] { [.init(name: "scale", keypath: \Bin.scale)] }
}

private final class Box: PersistentModel {
    var persistentBackingData: any BackingData<Box>
    init(backingData: any BackingData<Box>) { persistentBackingData = backingData }
    var size: Int { getValue(forKey: \.size) }
    static var schemaMetadata: [Schema.PropertyMetadata] {
        [.init(name: "size", keypath: \Box.size, defaultValue: "large")]
    }
}
