import Foundation
import SwiftData
import Testing

// The talk's versions and plan as they stand there, with what it leaves out: initializers, what identifies duplicates,
// and the parts of a model that a snippet doesn't show. `hashModifier:@"v3"` is a literal of another language, and
// compiles nowhere.

enum SampleTripsSchemaV1: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
    static var models: [any PersistentModel.Type] {
        [SampleTripsSchemaV1.Trip.self, BucketListItem.self, LivingAccommodation.self]
    }

    @Model
    class Trip {
        var name: String
        var destination: String

        var start_date: Date
        var end_date: Date

        var bucketList: [BucketListItem]? = []
        var livingAccommodation: LivingAccommodation?

        init(name: String, destination: String, start_date: Date, end_date: Date) {
            self.name = name
            self.destination = destination
            self.start_date = start_date
            self.end_date = end_date
        }
    }
}

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

@available(iOS 26, *)
enum SampleTripsSchemaV4: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(4, 0, 0) }

    static var models: [any PersistentModel.Type] {
        [
            Trip.self,
            BusinessTrip.self,
            PersonalTrip.self,
            BucketListItem.self,
            LivingAccommodation.self,
        ]
    }
}

enum SampleTripsMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
        var currentSchemas: [any VersionedSchema.Type] =
            [SampleTripsSchemaV1.self, SampleTripsSchemaV2.self, SampleTripsSchemaV3.self]
        if #available(iOS 26, *) {
            currentSchemas.append(SampleTripsSchemaV4.self)
        }
        return currentSchemas
    }

    static var stages: [MigrationStage] {
        var currentStages = [migrateV1toV2, migrateV2toV3]
        if #available(iOS 26, *) {
            currentStages.append(migrateV3toV4)
        }
        return currentStages
    }

    static let migrateV1toV2 = MigrationStage.custom(
        fromVersion: SampleTripsSchemaV1.self,
        toVersion: SampleTripsSchemaV2.self,
        willMigrate: { context in
            var fetchDesc = FetchDescriptor<SampleTripsSchemaV1.Trip>()
            fetchDesc.propertiesToFetch = [\.name]
            fetchDesc.relationshipKeyPathsForPrefetching = [\.livingAccommodation]

            let trips = try? context.fetch(fetchDesc)

            // De-duplicate Trip instances here...
            var names = Set<String>()
            for trip in trips ?? [] {
                if names.insert(trip.name).inserted { continue }
                // Trips of one name are kept, under names of their own, where they have somewhere to stay.
                if trip.livingAccommodation == nil {
                    context.delete(trip)
                } else {
                    trip.name += " (2)"
                }
            }

            try? context.save()
        },
        didMigrate: nil
    )

    static let migrateV2toV3 = MigrationStage.custom(
        fromVersion: SampleTripsSchemaV2.self,
        toVersion: SampleTripsSchemaV3.self,
        willMigrate: { context in
            let trips = try? context.fetch(FetchDescriptor<SampleTripsSchemaV2.Trip>())

            // De-duplicate Trip instances here...
            var known = Set<[String]>()
            for trip in trips ?? [] {
                let key = [trip.name, "\(trip.startDate)", "\(trip.endDate)"]
                if !known.insert(key).inserted { context.delete(trip) }
            }

            try? context.save()
        },
        didMigrate: nil
    )

    @available(iOS 26, *)
    static let migrateV3toV4 = MigrationStage.lightweight(
        fromVersion: SampleTripsSchemaV3.self,
        toVersion: SampleTripsSchemaV4.self
    )
}

struct SampleTripsMigrationTests {
    private func withFirstVersion(_ body: (MigratedStore) throws -> Void) throws {
        typealias Trip = SampleTripsSchemaV1.Trip
        try MigratedStore.with(
            SampleTripsSchemaV1.self,
            fill: { context in
                context.author = "app"
                for (index, name) in ["Alps", "Fair", "Alps", "Alps"].enumerated() {
                    let trip = Trip(
                        name: name, destination: "\(index)", start_date: .day(index), end_date: .day(index + 2))
                    context.insert(trip)
                    trip.bucketList = [BucketListItem(title: "item \(index)")]
                    if index == 3 { trip.livingAccommodation = LivingAccommodation(address: "Hut") }
                }
                try context.save()
                let fair = try #require(
                    try context.fetch(FetchDescriptor<Trip>(predicate: #Predicate { $0.name == "Fair" })).first)
                fair.start_date = .day(20)
                fair.end_date = .day(21)
            }, body)
    }

    private func check(_ context: ModelContext) throws {
        let trips = try context.fetch(FetchDescriptor<Trip>(sortBy: [SortDescriptor(\.startDate)]))
        #expect(trips.map(\.name) == ["Alps", "Alps (2)", "Fair"])
        #expect(trips.map(\.destination) == ["0", "3", "1"])
        #expect(trips.map(\.endDate) == [.day(2), .day(5), .day(21)])
        #expect(trips.map { $0.bucketList.map(\.title) } == [["item 0"], ["item 3"], ["item 1"]])
        #expect(trips.map { $0.livingAccommodation?.address } == [nil, "Hut", nil])
        // The list of a trip that went belongs to nobody now.
        #expect(try context.fetchCount(FetchDescriptor<BucketListItem>()) == 4)
    }

    @Test func dataArriveInTheFourthVersionAsTheTalkSays() throws {
        try withFirstVersion { store in
            try store.use(SampleTripsSchemaV4.self, SampleTripsMigrationPlan.self) { context throws in
                try check(context)
                context.insert(BusinessTrip(name: "Client", perdiem: 90, startDate: .day(30)))
                context.insert(PersonalTrip(name: "Sister", reason: .family, startDate: .day(40)))
                try context.save()
                #expect(try context.fetch(FetchDescriptor<BusinessTrip>()).map(\.perdiem) == [90])
                #expect(try context.fetchCount(FetchDescriptor<Trip>()) == 5)
            }
            #expect(
                try store.lines("SELECT DISTINCT _type FROM Trip ORDER BY 1") == [
                    "BusinessTrip", "PersonalTrip", "Trip",
                ])
            #expect(
                try store.lines("SELECT name FROM pragma_index_list('Trip') ORDER BY 1")
                    == [
                        "Trip_endDate_index", "Trip_name_index", "Trip_name_startDate_endDate_unique",
                        "Trip_startDate_index",
                    ])
        }
    }

    @Test func versionsMayComeOneByOne() throws {
        try withFirstVersion { store in
            try store.use(SampleTripsSchemaV2.self, SampleTripsMigrationPlan.self) { context throws in
                #expect(try context.fetchCount(FetchDescriptor<SampleTripsSchemaV2.Trip>()) == 3)
            }
            try store.use(SampleTripsSchemaV3.self, SampleTripsMigrationPlan.self) { _ in }
            try store.use(SampleTripsSchemaV4.self, SampleTripsMigrationPlan.self) { try check($0) }
        }
    }

    @Test func oldHistoryIsReadWithTheNewModels() throws {
        try withFirstVersion { store in
            let token = try ModelContext(try store.open(SampleTripsSchemaV1.self)).history()[0].token
            try store.use(SampleTripsSchemaV4.self, SampleTripsMigrationPlan.self) { context throws in
                let descriptor = HistoryDescriptor<DefaultHistoryTransaction>(
                    predicate: #Predicate { $0.token > token && $0.author == "app" })
                let transactions = try context.fetchHistory(descriptor)
                #expect(transactions.count == 1)
                guard case .update(let change)? = transactions.first?.changes.first else {
                    Issue.record("no update")
                    return
                }
                let update = try #require(change as? DefaultHistoryUpdate<Trip>)
                #expect(update.updatedAttributes == [\Trip.startDate, \Trip.endDate])
                let trip = try #require(context.model(for: update.changedPersistentIdentifier) as? Trip)
                #expect(trip.name == "Fair")

                // From now on tombstones have what is preserved.
                context.delete(trip)
                try context.save()
                let deletions = try context.history().last?.changes.compactMap { change in
                    if case .delete(let last) = change { last as? DefaultHistoryDelete<Trip> } else { nil }
                }
                let deletion = try #require(deletions?.first)
                #expect(deletion.tombstone[\.name] == "Fair")
                #expect(deletion.tombstone[\.startDate] == .day(20))
            }
        }
    }
}
