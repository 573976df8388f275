import SwiftData

/// The second version: names are unique, and the dates have Swift-style names.
enum SampleTripsSchemaV2: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }

    static var models: [any PersistentModel.Type] {
        [SampleTripsSchemaV2.Trip.self, BucketListItem.self, LivingAccommodation.self]
    }

    @Model
    class Trip {
        @Attribute(.unique) var name: String
        var destination: String

        @Attribute(originalName: "start_date") var startDate: Date
        @Attribute(originalName: "end_date") var endDate: Date

        var bucketList: [BucketListItem]? = []
        var livingAccommodation: LivingAccommodation?

        init(name: String, destination: String, startDate: Date, endDate: Date) {
            self.name = name
            self.destination = destination
            self.startDate = startDate
            self.endDate = endDate
        }
    }
}
