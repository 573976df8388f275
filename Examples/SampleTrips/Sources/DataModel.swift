import SwiftData

/// The store, opened in the same way by every part of the app.
struct DataModel {
    let container: ModelContainer

    /// - Parameter sync: keeps the file in sync with other devices for as long as the container lives.
    init(_ url: URL, sync: (any StoreSync)? = nil) throws {
        container = try ModelContainer(
            for: Schema(versionedSchema: SampleTripsSchemaV4.self), migrationPlan: SampleTripsMigrationPlan.self,
            configurations: ModelConfiguration(url: url, sync: sync))
    }

    /// Creates a context whose changes have this author in the history.
    func context(_ author: Author) -> ModelContext {
        let context = ModelContext(container)
        context.author = author.rawValue
        return context
    }

    enum Author: String {
        case app
        case widget
    }
}

extension ModelContext {
    /// Returns the trip with a name; if there are several, the one that starts first.
    func trip(_ name: String) throws -> Trip {
        var descriptor = FetchDescriptor<Trip>(
            predicate: #Predicate { $0.name == name }, sortBy: [SortDescriptor(\.startDate)])
        descriptor.fetchLimit = 1
        guard let trip = try fetch(descriptor).first else { throw TripError.unknown(name) }
        return trip
    }
}

enum TripError: Error, CustomStringConvertible {
    case unknown(String)
    case noAccommodation(String)

    var description: String {
        switch self {
        case .unknown(let name): "There is no trip called \(name). `list` shows them."
        case .noAccommodation(let name): "\(name) has no accommodation yet. `stay` sets one."
        }
    }
}
