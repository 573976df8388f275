import Foundation
import SwiftData
import Testing

@Model
final class Rack {
    @Attribute(.unique) var name: String
    @Relationship(inverse: \Crate.rack) var crates: [Crate] = []

    init(_ name: String) { self.name = name }
}

@Model
final class Crate {
    #Unique<Crate>([\.rack, \.place])
    var rack: Rack?
    var place: Int
    var content: String

    init(_ rack: Rack?, _ place: Int, _ content: String) {
        self.rack = rack
        self.place = place
        self.content = content
    }
}

/// Unique keys that include a relationship.
struct RelationshipKeyTests {
    let container: ModelContainer
    let context: ModelContext

    init() throws {
        container = try ModelContainer(
            for: Rack.self, Crate.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
    }

    private func stored() throws -> [String] {
        try container.reader().all(Crate.self).map { "\($0.rack?.name ?? "none") \($0.place) \($0.content)" }
    }

    @Test func aNewModelWithTheKeyOfAStoredOneUpdatesIt() throws {
        let rack = Rack("left")
        let old = context.inserting(Crate(rack, 1, "apples"))
        context.insert(Crate(rack, 2, "pears"))
        try context.save()
        context.insert(Crate(rack, 1, "plums"))
        #expect(try context.fetchCount(FetchDescriptor<Crate>()) == 2)
        try context.save()
        #expect(old.content == "plums")
        #expect(try stored() == ["left 1 plums", "left 2 pears"])
    }

    @Test func twoNewModelsOfANewTargetBecomeOne() throws {
        let rack = Rack("left")
        for content in ["apples", "plums"] { context.insert(Crate(rack, 1, content)) }
        context.insert(Crate(Rack("right"), 1, "pears"))
        context.insert(Crate(nil, 1, "nuts"))
        context.insert(Crate(nil, 1, "more nuts"))
        try context.save()
        #expect(try stored() == ["left 1 plums", "right 1 pears", "none 1 nuts", "none 1 more nuts"])
    }

    @Test func aKeyMayLeadToAModelThatIsItselfAnUpdate() throws {
        context.insert(Crate(Rack("left"), 1, "apples"))
        try context.save()
        context.insert(Crate(Rack("left"), 1, "plums"))
        try context.save()
        #expect(try stored() == ["left 1 plums"])
        #expect(try context.fetchCount(FetchDescriptor<Rack>()) == 1)
    }
}
