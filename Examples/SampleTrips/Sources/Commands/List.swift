import ArgumentParser
import SwiftData

enum Segment: String, CaseIterable, ExpressibleByArgument {
    case all
    case personal
    case business
}

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the trips.", discussion: "A dot marks what was changed elsewhere since you last looked at it.")

    @OptionGroup var store: StoreOption

    func run() throws {
        let model = try store.open()
        let unread = try UnreadTrips(model, store: store.url)
        // Models find related models through their context, so keep it as long as them.
        let context = model.context(.app)
        let trips = try context.fetch(FetchDescriptor<Trip>(sortBy: [SortDescriptor(\.startDate)]))
        for trip in trips { print("\(unread.contains(trip) ? "●" : " ") \(trip.line)") }
        if trips.isEmpty { print("No trips yet.") }
    }
}

struct Search: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Find trips by name or destination.")

    @OptionGroup var store: StoreOption
    @Argument(help: "A part of the name or the destination; case and accents don't matter.")
    var text = ""
    @Option(help: "Only trips of a kind.")
    var segment = Segment.all

    func run() throws {
        let searchText = text
        let classPredicate: Predicate<Trip>? =
            switch segment {
            case .personal: #Predicate { $0 is PersonalTrip }
            case .business: #Predicate { $0 is BusinessTrip }
            case .all: nil
            }
        let searchPredicate = #Predicate<Trip> {
            searchText.isEmpty
                ? true
                : $0.name.localizedStandardContains(searchText) || $0.destination.localizedStandardContains(searchText)
        }
        let fullPredicate: Predicate<Trip>
        if let classPredicate {
            fullPredicate = #Predicate { classPredicate.evaluate($0) && searchPredicate.evaluate($0) }
        } else {
            fullPredicate = searchPredicate
        }
        let descriptor = FetchDescriptor(predicate: fullPredicate, sortBy: [SortDescriptor(\Trip.startDate)])
        let context = try store.open().context(.app)
        let trips = try context.fetch(descriptor)
        for trip in trips { print("  \(trip.line)") }
        if trips.isEmpty { print("No trip matches.") }
    }
}

extension Trip {
    /// Describes the trip in one line.
    var line: String {
        let kind =
            switch self {
            case let trip as BusinessTrip: ", business, \(trip.perdiem.formatted()) a day"
            case let trip as PersonalTrip: ", \(trip.reason.rawValue)"
            default: ""
            }
        let stay = livingAccommodation.map { ", staying at \($0.address)\($0.isConfirmed ? " (confirmed)" : "")" } ?? ""
        return "\(name) to \(destination), \(startDate.day) to \(endDate.day)\(kind)\(stay)"
    }
}
