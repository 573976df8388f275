import Foundation
import SwiftData

// Models with every kind of relationship and attribute.

@Model
final class Company {
    @Attribute(.unique, .preserveValueOnDeletion) var code: String
    var title: String
    @Relationship(deleteRule: .cascade, inverse: \Employee.company) var employees: [Employee] = []
    @Relationship(deleteRule: .deny) var offices: [Office] = []

    init(code: String, title: String = "") {
        self.code = code
        self.title = title
    }
}

@Model
final class Employee {
    var name: String
    var age: Int
    var nickname: String?
    var company: Company?
    @Relationship(inverse: \Badge.holder) var badge: Badge?
    @Relationship(inverse: \Project.members) var projects: [Project] = []
    @Transient var note = "none"

    init(name: String, age: Int = 30, nickname: String? = nil, company: Company? = nil) {
        self.name = name
        self.age = age
        self.nickname = nickname
        self.company = company
    }
}

@Model
final class Office {
    var city: String
    var company: Company?
    init(city: String) { self.city = city }
}

@Model
final class Badge {
    var number: Int
    var holder: Employee?
    init(number: Int) { self.number = number }
}

@Model
final class Project {
    var title: String
    var members: [Employee] = []
    init(title: String) { self.title = title }
}

struct Point: Codable, Equatable {
    var x: Double
    var y: Double
}

enum Colour: String, Codable, CaseIterable {
    case red, green
}

@Model
final class Everything {
    var int: Int = 0
    var small: Int8 = 0
    var bool: Bool = false
    var double: Double = 0
    var float: Float = 0
    var text: String = ""
    var date: Date = Date(timeIntervalSince1970: 0)
    var data: Data = Data()
    var uuid: UUID = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    var url: URL?
    var decimal: Decimal = 0
    var colour: Colour = Colour.red
    var otherColour: Colour?
    var point: Point = Point(x: 0, y: 0)
    var otherPoint: Point?
    var words: [String] = []
    var maybe: Int?

    init() {}
}

func companyContainer(_ configuration: ModelConfiguration = .init(isStoredInMemoryOnly: true)) throws -> ModelContainer
{
    try ModelContainer(for: Company.self, Project.self, Everything.self, configurations: configuration)
}

/// Runs `body` with a folder that is deleted afterwards.
func withTemporaryFolder<R>(_ body: (URL) throws -> R) throws -> R {
    let folder = FileManager.default.temporaryDirectory.appending(path: "models-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
}
