import SwiftData

/// The fourth and current version: business and personal trips.
enum SampleTripsSchemaV4: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(4, 0, 0) }

    static var models: [any PersistentModel.Type] {
        [Trip.self, BusinessTrip.self, PersonalTrip.self, BucketListItem.self, LivingAccommodation.self]
    }
}

@Model
class Trip {
    #Unique<Trip>([\.name, \.startDate, \.endDate])
    #Index<Trip>([\.name], [\.startDate], [\.endDate], [\.name, \.startDate, \.endDate])

    @Attribute(.preserveValueOnDeletion)
    var name: String

    @Attribute(hashModifier: "v3")
    var destination: String

    @Attribute(.preserveValueOnDeletion, originalName: "start_date")
    var startDate: Date

    @Attribute(.preserveValueOnDeletion, originalName: "end_date")
    var endDate: Date

    @Relationship(deleteRule: .cascade) var bucketList: [BucketListItem]? = []
    @Relationship(deleteRule: .cascade) var livingAccommodation: LivingAccommodation?

    init(name: String, destination: String, startDate: Date, endDate: Date) {
        self.name = name
        self.destination = destination
        self.startDate = startDate
        self.endDate = endDate
    }
}

@Model
class BusinessTrip: Trip {
    var perdiem: Double = 0.0

    init(name: String, destination: String, startDate: Date, endDate: Date, perdiem: Double) {
        self.perdiem = perdiem
        super.init(name: name, destination: destination, startDate: startDate, endDate: endDate)
    }
}

@Model
class PersonalTrip: Trip {
    enum Reason: String, CaseIterable, Codable {
        case family
        case reunion
        case wellness
    }

    var reason: Reason

    init(name: String, destination: String, startDate: Date, endDate: Date, reason: Reason) {
        self.reason = reason
        super.init(name: name, destination: destination, startDate: startDate, endDate: endDate)
    }
}

@Model
class BucketListItem {
    var title: String
    var isDone: Bool = false

    init(title: String) {
        self.title = title
    }
}

@Model
class LivingAccommodation {
    var address: String
    var isConfirmed: Bool = false

    init(address: String) {
        self.address = address
    }
}
