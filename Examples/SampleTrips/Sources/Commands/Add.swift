import ArgumentParser
import SwiftData

struct Add: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Add a trip.")

    @OptionGroup var store: StoreOption
    @Argument var name: String
    @Argument var destination: String
    @OptionGroup var dates: DateRange
    @Option(help: "Makes it a business trip with this much to spend a day.")
    var perdiem: Double?
    @Option(help: "Makes it a personal trip: \(PersonalTrip.Reason.allCases.map(\.rawValue).joined(separator: ", ")).")
    var reason: PersonalTrip.Reason?
    @Option(name: .customLong("todo"), help: "Something to do there. May be repeated.")
    var todos: [String] = []

    func validate() throws {
        if perdiem != nil && reason != nil { throw ValidationError("A trip is for business or personal, not both.") }
    }

    func run() throws {
        let context = try store.open().context(.app)
        let trip: Trip
        if let perdiem {
            trip = BusinessTrip(
                name: name, destination: destination, startDate: dates.start, endDate: dates.end, perdiem: perdiem)
        } else if let reason {
            trip = PersonalTrip(
                name: name, destination: destination, startDate: dates.start, endDate: dates.end, reason: reason)
        } else {
            trip = Trip(name: name, destination: destination, startDate: dates.start, endDate: dates.end)
        }
        trip.bucketList = todos.map { BucketListItem(title: $0) }
        context.insert(trip)
        try context.save()
        print("Added \(name).")
    }
}

extension PersonalTrip.Reason: ExpressibleByArgument {}
