import ArgumentParser
import SwiftData

/// Creates a file like one from an old release of the app, so that the migration can be tried.
struct Sow: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a file as version 1 of the app left it, with trips of one name.",
        discussion: "Any other command then opens it, and migrates it to version 4.")

    @OptionGroup var store: StoreOption

    func validate() throws {
        if FileManager.default.fileExists(atPath: store.store) {
            throw ValidationError("--store \(store.store): is there already")
        }
    }

    func run() throws {
        let container = try ModelContainer(
            for: Schema(versionedSchema: SampleTripsSchemaV1.self), configurations: ModelConfiguration(url: store.url))
        let context = ModelContext(container)
        context.author = DataModel.Author.app.rawValue
        for (name, destination, first) in [("Alps", "Tyrol", 0), ("Alps", "Valais", 40), ("Coast", "Brittany", 80)] {
            let day = Date(timeIntervalSince1970: 1_780_272_000 + Double(first) * 86_400)
            let trip = SampleTripsSchemaV1.Trip(
                name: name, destination: destination, start_date: day, end_date: day + 6 * 86_400)
            trip.bucketList = [BucketListItem(title: "See \(destination)")]
            context.insert(trip)
        }
        try context.save()
        print("Made \(store.store) of version 1 with 3 trips, two of them called Alps.")
    }
}
