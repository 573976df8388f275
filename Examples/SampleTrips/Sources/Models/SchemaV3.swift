import SwiftData

/// The third version: name and dates together are unique, and identify a trip on every device.
enum SampleTripsSchemaV3: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(3, 0, 0) }

    static var models: [any PersistentModel.Type] {
        [SampleTripsSchemaV3.Trip.self, BucketListItem.self, LivingAccommodation.self]
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
