import Foundation
import SwiftData

// Headers of models.

protocol Named {
    var name: String { get }
}

protocol Stamped: PersistentModel {
    var stamp: Date { get set }
}

typealias NamedAndTitled = Named & Titled

protocol Titled {
    var title: String { get }
}

@Model
final class Guest: Named {
    var name: String
    init(name: String) { self.name = name }
}

@Model
final class Room: @unchecked Sendable {
    var number = 0
    init(number: Int) { self.number = number }
}

@Model
final class Key: Swift.Identifiable {
    var id: UUID
    init(id: UUID) { self.id = id }
}

@Model
final class Visit: Stamped {
    var stamp: Date
    init(stamp: Date) { self.stamp = stamp }
}

@Model
final class Talk: NamedAndTitled {
    var name: String
    var title: String
    init(name: String, title: String) {
        self.name = name
        self.title = title
    }
}

@Model
class Animal: Named {
    var name: String
    init(name: String) { self.name = name }
}

@Model
final class Dog: Animal, Stamped {
    var stamp: Date
    var tricks: [String] = []

    init(name: String, stamp: Date) {
        self.stamp = stamp
        super.init(name: name)
    }
}

// Properties of models.

@Model
final class Passport {
    @Attribute(.unique) let id: UUID
    let country: String
    let issued: Date?
    let holder: Guest?
    var stamps = 0

    init(id: UUID, country: String, issued: Date? = nil, holder: Guest? = nil) {
        self.id = id
        self.country = country
        self.issued = issued
        self.holder = holder
    }
}

@Model
final class Watched {
    static nonisolated(unsafe) var calls = 0

    var count = 0 {
        didSet { Watched.calls += 1 }
    }
    var name = "" {
        willSet { Watched.calls += newValue.count }
    }

    @Attribute
    init() {}
}

@Model
final class Place {
    #Index<Place>(.binary([\.name]), .rtree([\.latitude, \.longitude]))
    #Unique<Place>([\.name, \.latitude])

    var name = ""
    var latitude = 0.0
    var longitude = 0.0
    init() {}
}

// For predicates.

@Model
final class Album {
    var title: String
    var subtitle: String?
    var year: Int?
    @Relationship(inverse: \Track.album) var tracks: [Track]?

    init(title: String, subtitle: String? = nil, year: Int? = nil) {
        self.title = title
        self.subtitle = subtitle
        self.year = year
    }
}

@Model
final class Track {
    var name: String
    var comment: String?
    var album: Album?

    init(name: String, comment: String? = nil, album: Album? = nil) {
        self.name = name
        self.comment = comment
        self.album = album
    }
}

// Two relationships with the same inverse.

@Model
final class Case {
    @Relationship(inverse: \Document.owner) var unread: [Document]? = []
    @Relationship(inverse: \Document.owner) var other: [Document]? = []
    init() {}
}

@Model
final class Document {
    var title: String
    var owner: Case?
    init(title: String) { self.title = title }
}

// A superclass that is no model.

class Base {
    var kept = 0
}

@Model
final class Derived: Base {
    var name = ""
    override init() {}
}
