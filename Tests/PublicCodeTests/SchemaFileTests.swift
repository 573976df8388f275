import Foundation
import SwiftData
import Testing

@Model
final class Route {
    #Unique<Route>([\.line, \.direction])
    #Index<Route>([\.name])
    @Attribute(.preserveValueOnDeletion, originalName: "title", hashModifier: "2") var name: String
    var line: Int
    var direction = Direction.out
    var open = true
    var opened: Date?
    fileprivate var signs: Signs?
    @Attribute(.transformable(by: ScaleTransformer.self)) var scale: Scale
    @Relationship(deleteRule: .cascade, minimumModelCount: 0, maximumModelCount: 9, inverse: \RouteStop.route)
    var stops: [RouteStop] = []

    init(name: String, line: Int) {
        self.name = name
        self.line = line
        scale = Scale(steps: 1)
    }

    enum Direction: String, Codable { case out, back }
}

private struct Signs: Codable {
    var colour = "red"
}

@Model
class RouteStop {
    var name: String
    var route: Route?
    init(name: String) { self.name = name }
}

@Model
final class Terminus: RouteStop {
    var tracks = 2
    override init(name: String) { super.init(name: name) }
}

struct SchemaFileTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func file(_ text: String) throws -> URL {
        let file = folder.appending(path: "\(UUID().uuidString).json")
        try Data(text.utf8).write(to: file)
        return file
    }

    @Test func aSchemaSurvivesSavingAndLoading() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let schema = Schema([Route.self, Terminus.self], version: .init(2, 1, 0))
        let file = folder.appending(path: "routes.json")
        try schema.save(to: file)
        let read = try Schema.load(from: file)
        #expect(read == schema)
        #expect(read != Schema([Route.self, Terminus.self]))
        #expect(read.version == .init(2, 1, 0))
        #expect(read.entities.map(\.name) == ["Route", "RouteStop", "Terminus"])
        let route = try #require(read.entitiesByName["Route"])
        #expect(route.uniquenessConstraints == [["line", "direction"]])
        #expect(route.indices == [["name"]])
        let name = try #require(route.attributesByName["name"])
        #expect(name.originalName == "title")
        #expect(name.hashModifier == "2")
        #expect(name.options == [.preserveValueOnDeletion])
        #expect(name.valueType == String.self)
        #expect(route.attributesByName["line"]?.originalName == "line")
        #expect(route.attributesByName["opened"]?.isOptional == true)
        #expect(route.attributesByName["open"]?.defaultValue as? Bool == true)
        #expect(route.attributesByName["direction"]?.valueType == Void.self)
        #expect(route.attributesByName["scale"]?.isTransformable == true)
        let stops = try #require(route.relationshipsByName["stops"])
        #expect(stops.destination == "RouteStop")
        #expect(stops.inverseName == "route")
        #expect(stops.deleteRule == .cascade)
        #expect(stops.maximumModelCount == 9)
        #expect(!stops.isToOneRelationship)
        #expect(stops.valueType == Void.self)
        let terminus = try #require(read.entitiesByName["Terminus"])
        #expect(terminus.superentity?.name == "RouteStop")
        #expect(terminus.superentity?.subentities.map(\.name) == ["Terminus"])
        #expect(read.entity(for: Terminus.self) == schema.entity(for: Terminus.self))
        // The name of a private type stays the same in the next process.
        #expect(try String(contentsOf: file, encoding: .utf8).contains("Optional<PublicCodeTests.Signs>"))
        // Saving it again writes the same bytes.
        let again = folder.appending(path: "again.json")
        try read.save(to: again)
        #expect(try Data(contentsOf: again) == Data(contentsOf: file))
    }

    @Test func aLoadedSchemaThatDiffersFromItsModelsStaysUnchanged() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let schema = Schema([RouteStop.self])
        let text = String(decoding: try JSONEncoder().encode(schema), as: UTF8.self)
        let changed = try Schema.load(
            from: file(text.replacingOccurrences(of: #""name":"name""#, with: #""name":"label""#)))
        #expect(changed != schema)
        #expect(changed.entitiesByName["RouteStop"]?.attributesByName["label"]?.valueType == String.self)
        #expect {
            try ModelContainer(for: changed, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        } throws: { SwiftDataError.unknownSchema ~= $0 && "\($0)".contains("Create the container for models") }
        // The name of a type that this program lacks, and invalid names, are kept unchanged.
        for name in ["Elsewhere.Kind", "$s4main", "", #"\u0000Si"#, String(repeating: "Say", count: 10_000)] {
            let foreign = try Schema.load(from: file(text.replacingOccurrences(of: "Swift.String", with: name)))
            #expect(foreign.entitiesByName["RouteStop"]?.attributesByName["name"]?.valueType == Void.self)
            #expect(foreign != schema)
            #expect(try JSONDecoder().decode(Schema.self, from: JSONEncoder().encode(foreign)) == foreign)
        }
    }

    /// A file in the first version of the encoding: such files must stay readable.
    @Test func loadingReadsTheFirstEncoding() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let text = """
            {
              "encodingVersion": {"major": 1, "minor": 0, "patch": 0},
              "version": {"major": 2, "minor": 3, "patch": 4},
              "entities": [{
                "name": "Stop", "subentityNames": [], "indices": [["name"]], "uniquenessConstraints": [["name"]],
                "properties": [
                  {"attribute": {
                    "name": "name", "isOptional": false, "valueType": "Swift.String", "hashModifier": "1",
                    "originalName": "label", "defaultValue": {"text": "new"},
                    "options": ["unique", "preserveValueOnDeletion", {"transformerName": "scale"}]}},
                  {"relationship": {
                    "name": "route", "options": ["unique"], "deleteRule": "cascade", "minimumModelCount": 1,
                    "maximumModelCount": 1, "destination": "Route", "inverseName": "stops", "isToOneRelationship": true,
                    "isOptional": true, "valueType": "Swift.Optional<PublicCodeTests.Route>"}}
                ]}]
            }
            """
        let schema = try Schema.load(from: file(text))
        #expect(schema.version == .init(2, 3, 4))
        let stop = try #require(schema.entitiesByName["Stop"])
        let name = try #require(stop.attributesByName["name"])
        #expect(name.options == [.unique, .preserveValueOnDeletion, .transformable(by: "scale")])
        #expect(name.originalName == "label")
        #expect(name.valueType == String.self)
        let route = try #require(stop.relationshipsByName["route"])
        #expect(route.options == [.unique])
        #expect(route.deleteRule == .cascade)
        #expect(route.isOptional)
        // Encoding it again gives the same JSON.
        let written = try JSONSerialization.jsonObject(with: JSONEncoder().encode(schema)) as? NSDictionary
        #expect(try written == JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary)
        let unknown = try file(text.replacingOccurrences(of: #""unique", "preserve"#, with: #""odd", "preserve"#))
        #expect { try Schema.load(from: unknown) } throws: { "\($0)".contains("There is no option odd") }
    }

    @Test func loadingRefusesAFileThatIsNoSchema() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let newer = String(decoding: try JSONEncoder().encode(Schema([RouteStop.self])), as: UTF8.self)
            .replacingOccurrences(of: #""major":1"#, with: #""major":9"#)
        for text in ["", "{}", "[1]", newer] {
            let file = try file(text)
            #expect { try Schema.load(from: file) } throws: { SwiftDataError.unknownSchema ~= $0 }
        }
        #expect(throws: (any Error).self) { try Schema.load(from: folder.appending(path: "none.json")) }
    }

    @Test func aSchemaMayBeBuiltWithoutModels() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let stop = Schema.Entity(
            "Stop",
            subentities: Schema.Entity(
                "Hub", properties: Schema.Attribute(name: "tracks", valueType: Int.self, defaultValue: 2)),
            properties: Schema.Attribute(name: "name", options: [.unique], valueType: String?.self))
        let schema = Schema(stop, Schema.Entity("Empty"), version: .init(3, 0, 0))
        #expect(schema.entities.map(\.name) == ["Empty", "Hub", "Stop"])
        #expect(schema.entitiesByName["Hub"]?.superentity?.name == "Stop")
        #expect(schema.entitiesByName["Stop"]?.subentities.map(\.name) == ["Hub"])
        #expect(schema.entitiesByName["Stop"]?.uniquenessConstraints == [["name"]])
        #expect(schema.entitiesByName["Stop"]?.attributesByName["name"]?.isOptional == true)
        #expect(schema.entitiesByName["Hub"]?.attributesByName["tracks"]?.defaultValue as? Int == 2)
        let file = folder.appending(path: "stops.json")
        try schema.save(to: file)
        #expect(try Schema.load(from: file) == schema)
        #expect(Schema() == Schema([]))
        #expect {
            try ModelContainer(for: schema, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        } throws: { SwiftDataError.unknownSchema ~= $0 && "\($0)".contains("has no models") }
        var attribute = Schema.Attribute(.unique)
        attribute.name = "code"
        attribute.valueType = Int.self
        attribute.originalName = "number"
        attribute.defaultValue = 7
        #expect(attribute.defaultValue as? Int == 7)
        #expect(try JSONDecoder().decode(Schema.Attribute.self, from: JSONEncoder().encode(attribute)) == attribute)
        var relationship = Schema.Relationship(.unique, deleteRule: .deny, originalName: "parts")
        relationship.name = "items"
        let read = try JSONDecoder().decode(Schema.Relationship.self, from: JSONEncoder().encode(relationship))
        #expect(read == relationship)
        #expect(read.originalName == "parts")
        #expect(read.options == [.unique])
    }
}
