import SwiftData

// The models of the talks, with the initializers that they leave out.

@Model
class Trip {
    #Unique<Trip>([\.name, \.startDate, \.endDate])
    #Index<Trip>([\.name], [\.startDate], [\.endDate], [\.name, \.startDate, \.endDate])

    @Attribute(.preserveValueOnDeletion)
    var name: String
    var destination: String

    @Attribute(.preserveValueOnDeletion)
    var startDate: Date

    @Attribute(.preserveValueOnDeletion)
    var endDate: Date

    var bucketList: [BucketListItem] = [BucketListItem]()
    var livingAccommodation: LivingAccommodation?

    init(name: String, destination: String, startDate: Date = .day(1), endDate: Date = .day(2)) {
        self.name = name
        self.destination = destination
        self.startDate = startDate
        self.endDate = endDate
    }
}

@available(iOS 26, *)
@Model
class BusinessTrip: Trip {
    var perdiem: Double = 0.0

    init(name: String, perdiem: Double, startDate: Date = .day(1)) {
        self.perdiem = perdiem
        super.init(name: name, destination: "Work", startDate: startDate)
    }
}

@available(iOS 26, *)
@Model
class PersonalTrip: Trip {
    enum Reason: String, CaseIterable, Codable {
        case family
        case reunion
        case wellness
    }

    var reason: Reason

    init(name: String, reason: Reason, startDate: Date = .day(1)) {
        self.reason = reason
        super.init(name: name, destination: "Home", startDate: startDate)
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

extension Date {
    static func day(_ number: Int) -> Date { Date(timeIntervalSince1970: Double(number) * 86_400) }
}

/// A container in memory with the talks' models.
func tripContainer() throws -> ModelContainer {
    try ModelContainer(
        for: Trip.self, BusinessTrip.self, PersonalTrip.self, BucketListItem.self, LivingAccommodation.self,
        configurations: ModelConfiguration(isStoredInMemoryOnly: true))
}
