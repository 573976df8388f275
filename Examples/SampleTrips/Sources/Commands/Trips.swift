import ArgumentParser
import SwiftData

struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show a trip, and take its badge away.")

    @OptionGroup var store: StoreOption
    @Argument var name: String

    func run() throws {
        let model = try store.open()
        var unread = try UnreadTrips(model, store: store.url)
        let context = model.context(.app)
        let trip = try context.trip(name)
        print(trip.line)
        for item in (trip.bucketList ?? []).sorted(by: { $0.title < $1.title }) {
            print("  [\(item.isDone ? "x" : " ")] \(item.title)")
        }
        try unread.markRead(trip)
    }
}

struct Stay: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Say where you stay on a trip.")

    @OptionGroup var store: StoreOption
    @Argument var name: String
    @Argument var address: String

    func run() throws {
        let context = try store.open().context(.app)
        let trip = try context.trip(name)
        if let old = trip.livingAccommodation { context.delete(old) }
        trip.livingAccommodation = LivingAccommodation(address: address)
        try context.save()
        print("\(name): staying at \(address).")
    }
}

struct Confirm: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Confirm where you stay, as the widget does it: from a process of its own, under its own author.")

    @OptionGroup var store: StoreOption
    @Argument var name: String

    func run() throws {
        let context = try store.open().context(.widget)
        let trip = try context.trip(name)
        guard let accommodation = trip.livingAccommodation else { throw TripError.noAccommodation(name) }
        accommodation.isConfirmed = true
        try context.save()
        print("\(name): \(accommodation.address) is confirmed.")
    }
}

struct Delete: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Delete a trip, its bucket list and its accommodation.")

    @OptionGroup var store: StoreOption
    @Argument var name: String

    func run() throws {
        let context = try store.open().context(.app)
        context.delete(try context.trip(name))
        try context.save()
        print("Deleted \(name).")
    }
}
