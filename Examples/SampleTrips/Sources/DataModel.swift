import SwiftData

/// The store, as every part of the app opens it.
struct DataModel {
    let container: ModelContainer

    /// - Parameter sync: keeps the file in step with others while the container lives.
    init(_ url: URL, sync: (any StoreSync)? = nil) throws {
        container = try ModelContainer(
            for: Schema(versionedSchema: SampleTripsSchemaV4.self), migrationPlan: SampleTripsMigrationPlan.self,
            configurations: ModelConfiguration(url: url, sync: sync))
    }

    /// A context whose changes say in the history who made them.
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
    /// The trip of a name; where there are several, the one that begins first.
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
