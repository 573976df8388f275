import SwiftData

/// Migrates a file of any version to the newest.
enum SampleTripsMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
        [SampleTripsSchemaV1.self, SampleTripsSchemaV2.self, SampleTripsSchemaV3.self, SampleTripsSchemaV4.self]
    }

    static var stages: [MigrationStage] { [migrateV1toV2, migrateV2toV3, migrateV3toV4] }

    /// Names become unique: of several trips with a name, the first is kept, and gets the others' items and
    /// accommodation.
    static let migrateV1toV2 = MigrationStage.custom(
        fromVersion: SampleTripsSchemaV1.self,
        toVersion: SampleTripsSchemaV2.self,
        willMigrate: { context in
            var fetchDesc = FetchDescriptor<SampleTripsSchemaV1.Trip>()
            fetchDesc.propertiesToFetch = [\.name]
            fetchDesc.relationshipKeyPathsForPrefetching = [\.livingAccommodation]

            var kept: [String: SampleTripsSchemaV1.Trip] = [:]
            for trip in try context.fetch(fetchDesc) {
                guard let first = kept[trip.name] else {
                    kept[trip.name] = trip
                    continue
                }
                if first.livingAccommodation == nil { first.livingAccommodation = trip.livingAccommodation }
                first.bucketList = (first.bucketList ?? []) + (trip.bucketList ?? [])
                context.delete(trip)
            }
            try context.save()
        },
        didMigrate: nil)

    /// Names may repeat again if the dates differ. There should be no duplicates to delete, but a check costs little.
    static let migrateV2toV3 = MigrationStage.custom(
        fromVersion: SampleTripsSchemaV2.self,
        toVersion: SampleTripsSchemaV3.self,
        willMigrate: { context in
            struct Key: Hashable {
                var name: String
                var start: Date
                var end: Date
            }
            var seen: Set<Key> = []
            for trip in try context.fetch(FetchDescriptor<SampleTripsSchemaV2.Trip>()) {
                let key = Key(name: trip.name, start: trip.startDate, end: trip.endDate)
                if !seen.insert(key).inserted { context.delete(trip) }
            }
            try context.save()
        },
        didMigrate: nil)

    static let migrateV3toV4 = MigrationStage.lightweight(
        fromVersion: SampleTripsSchemaV3.self,
        toVersion: SampleTripsSchemaV4.self)
}
