import Logging
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import SwiftData
import Testing

@testable import SampleTripsApp

private typealias OldTrip = SampleTripsSchemaV1.Trip

/// Devices with versions 1 and 4 of the app's models, which sync through a broker while they are updated one after the
/// other.
@Suite(.timeLimit(.minutes(5))) struct MigratingDevicesTests {
    let directory: TemporaryDirectory
    let broker: EmbeddedBroker

    init() throws {
        directory = try TemporaryDirectory()
        broker = try EmbeddedBroker(topics: ["trips": 1])
    }

    /// The app on one device.
    private final class Device {
        let container: ModelContainer
        let context: ModelContext

        init(_ configuration: ModelConfiguration, version: any VersionedSchema.Type) throws {
            let isNewest = version == SampleTripsSchemaV4.self
            container = try ModelContainer(
                for: Schema(versionedSchema: version),
                migrationPlan: isNewest ? SampleTripsMigrationPlan.self : nil, configurations: configuration)
            context = ModelContext(container)
            context.author = "app"
        }

        func save(_ change: (ModelContext) throws -> Void) throws {
            try context.transaction { try change(context) }
        }
    }

    private func device(_ name: String, _ version: any VersionedSchema.Type, syncs: Bool = true) throws -> Device {
        var sync = KafkaSync.kafka(try #require(broker.bootstrapServers.first), topic: "trips", name: name)
        sync.configuration.kafka.fetchWaitMax = .milliseconds(10)
        sync.configuration.kafka.idleFetchWaitMax = .zero
        sync.log = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let url = directory.url.appendingPathComponent("\(name).store")
        return try Device(ModelConfiguration(url: url, sync: syncs ? sync : nil), version: version)
    }

    private func day(_ number: Double) -> Date { Date(timeIntervalSince1970: 1_780_272_000 + number * 86_400) }

    // The content that a device shows, as text.

    private func oldLines(_ device: Device) throws -> [String] {
        try ModelContext(device.container).fetch(FetchDescriptor<OldTrip>(sortBy: [SortDescriptor(\.name)])).map {
            line($0.name, $0.destination, $0.start_date, $0.end_date, $0.bucketList, $0.livingAccommodation)
        }
    }

    private func lines(_ device: Device) throws -> [String] {
        let order = [SortDescriptor(\Trip.name), SortDescriptor(\Trip.startDate)]
        return try ModelContext(device.container).fetch(FetchDescriptor<Trip>(sortBy: order)).map { trip in
            let kind =
                switch trip {
                case let trip as BusinessTrip: " \(trip.perdiem)"
                case let trip as PersonalTrip: " \(trip.reason)"
                default: ""
                }
            return line(
                trip.name, trip.destination, trip.startDate, trip.endDate, trip.bucketList, trip.livingAccommodation)
                + kind
        }
    }

    private func line(
        _ name: String, _ destination: String, _ start: Date, _ end: Date, _ items: [BucketListItem]?,
        _ stay: LivingAccommodation?
    ) -> String {
        let days = [start, end].map { String(Int($0.timeIntervalSince(day(0)) / 86_400)) }.joined(separator: "-")
        let list = (items ?? []).map(\.title).sorted().joined(separator: "+")
        return "\(name) \(destination) \(days) [\(list)] \(stay?.address ?? "-")"
    }

    private func wait(
        for expected: [String], line: Int = #line, _ lines: () throws -> [String]
    ) async throws {
        var seen: [String] = []
        do {
            try await eventually("\(expected)") {
                seen = try lines()
                return seen == expected
            }
        } catch is TestFailure {
            throw TestFailure("line \(line): shows \(seen) instead of \(expected)")
        }
    }

    @Test func devicesOfVersions1And4SyncWhileTheyMigrateOneAfterTheOther() async throws {
        var phone = try device("phone", SampleTripsSchemaV1.self)
        var watch = try device("watch", SampleTripsSchemaV1.self)
        let tablet = try device("tablet", SampleTripsSchemaV4.self)
        try phone.save { context in
            let alps = OldTrip(name: "Alps", destination: "Tyrol", start_date: day(0), end_date: day(6))
            alps.bucketList = [BucketListItem(title: "Ski")]
            alps.livingAccommodation = LivingAccommodation(address: "Hut")
            context.insert(alps)
        }
        try await wait(for: ["Alps Tyrol 0-6 [Ski] Hut"]) { try oldLines(watch) }
        // Renamed attributes arrive under the names of the receiving device.
        try await wait(for: ["Alps Tyrol 0-6 [Ski] Hut"]) { try lines(tablet) }

        try tablet.save { context in
            try context.trip("Alps").startDate = day(1)
            let fair = BusinessTrip(
                name: "Fair", destination: "Linz", startDate: day(10), endDate: day(12), perdiem: 80)
            fair.bucketList = [BucketListItem(title: "Talk")]
            context.insert(fair)
            context.insert(
                PersonalTrip(
                    name: "Aunt", destination: "Graz", startDate: day(20), endDate: day(21), reason: .family))
        }
        try watch.save { context in
            let alps = try #require(try context.fetch(FetchDescriptor<OldTrip>()).first)
            alps.end_date = day(7)
            alps.bucketList?.append(BucketListItem(title: "Eat"))
        }
        // A trip of a kind that version 1 doesn't know stays pending there until the update.
        try await wait(for: ["Alps Tyrol 1-7 [Eat+Ski] Hut"]) { try oldLines(phone) }
        let all = [
            "Alps Tyrol 1-7 [Eat+Ski] Hut", "Aunt Graz 20-21 [] - family", "Fair Linz 10-12 [Talk] - 80.0",
        ]
        try await wait(for: all) { try lines(tablet) }

        // The phone is updated with unpublished changes.
        await phone.container.stopSync()
        phone = try device("phone", SampleTripsSchemaV1.self, syncs: false)
        try phone.save { context in
            let alps = try #require(
                try context.fetch(FetchDescriptor<OldTrip>(predicate: #Predicate { $0.name == "Alps" })).first)
            alps.start_date = day(2)
            let coast = OldTrip(name: "Coast", destination: "Brittany", start_date: day(30), end_date: day(33))
            coast.livingAccommodation = LivingAccommodation(address: "Tent")
            context.insert(coast)
        }
        phone = try device("phone", SampleTripsSchemaV4.self)
        let more = [
            "Alps Tyrol 2-7 [Eat+Ski] Hut", "Aunt Graz 20-21 [] - family", "Coast Brittany 30-33 [] Tent",
            "Fair Linz 10-12 [Talk] - 80.0",
        ]
        for device in [phone, tablet] { try await wait(for: more) { try lines(device) } }
        try await wait(for: ["Alps Tyrol 2-7 [Eat+Ski] Hut", "Coast Brittany 30-33 [] Tent"]) { try oldLines(watch) }

        // The watch continues with version 1 for a while, and is updated last.
        try watch.save { context in
            let coast = try #require(
                try context.fetch(FetchDescriptor<OldTrip>(predicate: #Predicate { $0.name == "Coast" })).first)
            coast.destination = "Normandy"
        }
        await watch.container.stopSync()
        watch = try device("watch", SampleTripsSchemaV4.self)
        try phone.save { try $0.trip("Fair").livingAccommodation = LivingAccommodation(address: "Inn") }
        let end = [
            "Alps Tyrol 2-7 [Eat+Ski] Hut", "Aunt Graz 20-21 [] - family", "Coast Normandy 30-33 [] Tent",
            "Fair Linz 10-12 [Talk] Inn 80.0",
        ]
        for device in [phone, tablet, watch] { try await wait(for: end) { try lines(device) } }
        for device in [phone, tablet, watch] { await device.container.stopSync() }
        let digests = try ["phone", "tablet", "watch"].map { name in
            try StoreDigest.compute(try Store(path: directory.path("\(name).store")))
        }
        #expect(digests[0] == digests[1] && digests[1] == digests[2])
    }
}
