import Foundation
import SwiftData
import Testing

/// The article's code, with the names that the history types had when it was written. Apple's systems no longer have
/// these names.
@Suite struct ArticleTests {
    @Model
    final class Trip {
        @Attribute(.preserveValueOnDeletion)
        var airlineBookingRef: String
        var name: String
        var flightTime: Date
        init(name: String, flightTime: Date, airlineBookingRef: String) {
            self.name = name
            self.flightTime = flightTime
            self.airlineBookingRef = airlineBookingRef
        }
    }

    let modelContainer: ModelContainer
    let app: ModelContext
    let widget: ModelContext

    init() throws {
        modelContainer = try ModelContainer(
            for: Trip.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        app = ModelContext(modelContainer)
        app.author = "app"
        widget = ModelContext(modelContainer)
        widget.author = "widget"
        app.insert(Trip(name: "Rome", flightTime: .distantPast, airlineBookingRef: "R1"))
        app.insert(Trip(name: "Oslo", flightTime: .distantPast, airlineBookingRef: "O1"))
        try app.save()
    }

    func fetchWidgetTransactions(after tokenData: Data) -> Result<[DefaultHistoryTransaction], any Error> {
        do {
            let token = try JSONDecoder().decode(History.DefaultToken.self, from: tokenData)
            var descriptor = History.HistoryDescriptor<History.DefaultTransaction>()
            descriptor.predicate = #Predicate {
                ($0.token > token) && ($0.author == "widget")
            }
            let context = ModelContext(modelContainer)
            let txns = try context.fetchHistory(descriptor)
            return .success(txns)
        } catch {
            return .failure(error)
        }
    }

    /// The article reads the attributes of the change itself instead of the cast one, which compiles nowhere. And
    /// changes have become the cases of an enumeration.
    func updatedTrips(_ transactions: [DefaultHistoryTransaction]) -> Set<Trip> {
        let taskContext = ModelContext(modelContainer)
        var updatedTrips = Set<Trip>()
        for txn in transactions {
            for case .update(let update) in txn.changes {
                guard let change = update as? History.DefaultUpdateChange<Trip>,
                    change.updatedAttributes.count == 1,
                    change.updatedAttributes.contains(\.flightTime)
                else { continue }
                let changedModelID = change.changedPersistentIdentifier
                let fetchDescriptor = FetchDescriptor<Trip>(
                    predicate: #Predicate {
                        $0.persistentModelID == changedModelID
                    })
                if let trip = try? taskContext.fetch(fetchDescriptor).first {
                    updatedTrips.insert(trip)
                }
            }
        }
        return updatedTrips
    }

    /// The article's `.success` has no value, which compiles nowhere either.
    func deleteTransactions(before token: History.DefaultToken) -> Result<Void, any Error> {
        do {
            var descriptor = History.HistoryDescriptor<History.DefaultTransaction>()
            descriptor.predicate = #Predicate {
                $0.token < token
            }
            let context = ModelContext(modelContainer)
            try context.deleteHistory(descriptor)
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private func trip(_ name: String, _ context: ModelContext) throws -> Trip {
        try #require(try context.fetch(FetchDescriptor<Trip>(predicate: #Predicate { $0.name == name })).first)
    }

    private func lastToken() throws -> DefaultHistoryToken {
        try #require(try app.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token)
    }

    @Test func theWidgetsTransactionsAfterATokenNameTripsWithAChangedFlight() throws {
        let token = try JSONEncoder().encode(try lastToken())
        try trip("Oslo", app).flightTime = .distantFuture
        try app.save()
        try trip("Rome", widget).flightTime = .distantFuture
        try widget.save()
        try trip("Oslo", widget).name = "Bergen"
        try widget.save()
        let transactions = try fetchWidgetTransactions(after: token).get()
        #expect(transactions.count == 2)
        #expect(updatedTrips(transactions).map(\.name) == ["Rome"])
        #expect(throws: DecodingError.self) { try fetchWidgetTransactions(after: Data("{}".utf8)).get() }
    }

    @Test func theDeletionKeepsTheBookingReference() throws {
        app.delete(try trip("Rome", app))
        try app.save()
        var bookingRef: String?
        let change = try app.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.changes.first
        if case .delete(let delete) = change, let deletion = delete as? History.DefaultDeleteChange<Trip> {
            bookingRef = deletion.tombstone[\.airlineBookingRef]
        }
        #expect(bookingRef == "R1")
    }

    @Test func deletionRemovesTransactionsBeforeAToken() throws {
        try trip("Rome", app).name = "Roma"
        try app.save()
        try deleteTransactions(before: try lastToken()).get()
        let left = try app.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        guard left.count == 1, case .update = left.first?.changes.first else {
            Issue.record("\(left)")
            return
        }
    }
}
