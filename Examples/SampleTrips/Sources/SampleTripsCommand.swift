public import ArgumentParser
import SwiftData

/// The app from the talks without its windows: trips, plans for them, and accommodation.
public struct SampleTripsCommand: AsyncParsableCommand {
    public static let configuration = CommandConfiguration(
        commandName: "SampleTrips",
        abstract: "Plan trips, on several devices.",
        discussion: """
            Every command opens the file, does its work and ends, as an app, a widget or an extension would. `sync` \
            stays, and keeps the file in sync with others over Kafka.
            """,
        subcommands: [
            Add.self, List.self, Search.self, Show.self, Stay.self, Confirm.self, Delete.self, Sync.self, Sow.self,
        ])

    public init() {}
}

/// The options that all commands share.
struct StoreOption: ParsableArguments {
    @Option(help: "The file that holds the trips.", completion: .file())
    var store = "trips.store"

    var url: URL { URL(fileURLWithPath: store) }

    func open(sync: (any StoreSync)? = nil) throws -> DataModel { try DataModel(url, sync: sync) }
}

struct DateRange: ParsableArguments {
    @Option(help: "The first day, as 2026-06-01.", transform: day)
    var start: Date
    @Option(help: "The last day, as 2026-06-10.", transform: day)
    var end: Date

    func validate() throws {
        if end < start { throw ValidationError("--end \(end.day): is before --start \(start.day)") }
    }
}

private func day(_ text: String) throws -> Date {
    do {
        return try Date(text, strategy: .iso8601.year().month().day())
    } catch {
        throw ValidationError("\(text): is no day; write it as 2026-06-01")
    }
}

extension Date {
    var day: String { formatted(.iso8601.year().month().day()) }
}
