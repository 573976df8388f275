import Foundation
import SwiftData
import Testing

/// The talks' own code, as it stands there.
struct TalkTests {
    enum Segment: String, CaseIterable {
        case all = "All"
        case personal = "Personal"
        case business = "Business"
    }

    private func filled() throws -> (ModelContainer, ModelContext) {
        let container = try tripContainer()
        let context = ModelContext(container)
        context.insert(Trip(name: "Alps", destination: "Österreich", startDate: .day(3), endDate: .day(5)))
        context.insert(BusinessTrip(name: "Fair", perdiem: 80, startDate: .day(2)))
        context.insert(PersonalTrip(name: "Sister", reason: .family, startDate: .day(1)))
        try context.save()
        return (container, context)
    }

    private func names(_ segment: Segment, _ searchText: String, _ context: ModelContext) throws -> [String] {
        let classPredicate: Predicate<Trip>? = {
            switch segment {
            case .personal:
                return #Predicate { $0 is PersonalTrip }
            case .business:
                return #Predicate { $0 is BusinessTrip }
            default:
                return nil
            }
        }()
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
        return try context.fetch(descriptor).map(\.name)
    }

    @Test(arguments: [
        (Segment.all, "", ["Sister", "Fair", "Alps"]), (.personal, "", ["Sister"]), (.business, "", ["Fair"]),
        (.all, "osterr", ["Alps"]), (.all, "i", ["Sister", "Fair", "Alps"]), (.business, "WORK", ["Fair"]),
        (.personal, "work", []),
    ])
    func aSearchUsesNestedPredicates(segment: Segment, text: String, expected: [String]) throws {
        let (container, context) = try filled()
        #expect(try names(segment, text, context) == expected)
        withExtendedLifetime(container) {}
    }

    @Test func widgetFetchesTheNextTrip() throws {
        let (container, _) = try filled()
        let currentDate = Date.day(2)
        var fetchDesc = FetchDescriptor(sortBy: [SortDescriptor(\Trip.startDate, order: .forward)])
        fetchDesc.predicate = #Predicate { $0.endDate >= currentDate }
        fetchDesc.fetchLimit = 1
        let modelContext = ModelContext(container)
        let upcomingTrips = try modelContext.fetch(fetchDesc)
        #expect(upcomingTrips.map(\.name) == ["Sister"])
    }

    @Test func baseFetchFindsSubclassesAsThemselves() throws {
        let (container, _) = try filled()
        let context = ModelContext(container)
        let trips = try context.fetch(FetchDescriptor<Trip>(sortBy: [SortDescriptor(\.startDate)]))
        #expect(trips.map { String(describing: type(of: $0)) } == ["PersonalTrip", "BusinessTrip", "Trip"])
        #expect((trips[0] as? PersonalTrip)?.reason == .family)
        let business = try context.fetch(FetchDescriptor<BusinessTrip>(predicate: #Predicate { $0.perdiem > 50 }))
        #expect(business.map(\.name) == ["Fair"])
        #expect(business.first === trips[1])
    }

    // MARK: History

    private func findTransactions(
        after token: DefaultHistoryToken?, author: String, _ modelContainer: ModelContainer
    ) throws -> [DefaultHistoryTransaction] {
        var historyDescriptor = HistoryDescriptor<DefaultHistoryTransaction>()
        if let token {
            historyDescriptor.predicate = #Predicate { transaction in
                (transaction.token > token) && (transaction.author == author)
            }
        }
        let taskContext = ModelContext(modelContainer)
        return try taskContext.fetchHistory(historyDescriptor)
    }

    private func findTrips(
        in transactions: [DefaultHistoryTransaction], _ taskContext: ModelContext
    ) -> (Set<Trip>, DefaultHistoryToken?) {
        var resultTrips: Set<Trip> = []
        for transaction in transactions {
            for change in transaction.changes {
                let modelID = change.changedPersistentIdentifier
                let fetchDescriptor = FetchDescriptor<Trip>(
                    predicate: #Predicate { trip in
                        trip.livingAccommodation?.persistentModelID == modelID
                    })
                let fetchResults = try? taskContext.fetch(fetchDescriptor)
                guard let matchedTrip = fetchResults?.first else { continue }
                switch change {
                case .insert(_ as DefaultHistoryInsert<LivingAccommodation>): resultTrips.insert(matchedTrip)
                case .update(_ as DefaultHistoryUpdate<LivingAccommodation>): resultTrips.update(with: matchedTrip)
                case .delete(_ as DefaultHistoryDelete<LivingAccommodation>): resultTrips.remove(matchedTrip)
                default: break
                }
            }
        }
        return (resultTrips, transactions.last?.token)
    }

    @Test func widgetsChangesAreFoundByTokenAndAuthor() throws {
        let (container, context) = try filled()
        let trip = try #require(try context.fetch(FetchDescriptor<Trip>()).first)
        trip.livingAccommodation = LivingAccommodation(address: "Hut")
        try context.save()

        var historyDesc = HistoryDescriptor<DefaultHistoryTransaction>()
        historyDesc.sortBy = [.init(\.transactionIdentifier, order: .reverse)]
        historyDesc.fetchLimit = 1
        let transactions = try context.fetchHistory(historyDesc)
        let historyToken = try #require(transactions.last?.token)
        let data = try JSONEncoder().encode(historyToken)
        let kept = try JSONDecoder().decode(DefaultHistoryToken.self, from: data)

        let widget = ModelContext(container)
        widget.author = "widget"
        let accommodation = try #require(try widget.fetch(FetchDescriptor<LivingAccommodation>()).first)
        accommodation.isConfirmed = true
        try widget.save()
        trip.destination = "Tirol"
        try context.save()

        let fromWidget = try findTransactions(after: kept, author: "widget", container)
        #expect(fromWidget.count == 1)
        let reader = ModelContext(container)
        let (trips, token) = findTrips(in: fromWidget, reader)
        #expect(trips.map(\.name) == [trip.name])
        #expect(try findTransactions(after: token, author: "widget", container).isEmpty)
    }

    @Test func historyIsNarrowedToEntities() throws {
        let (container, context) = try filled()
        let historyToken = try #require(
            try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token)
        context.insert(BucketListItem(title: "Ski"))
        try context.save()
        context.insert(LivingAccommodation(address: "Hut"))
        try context.save()

        let tokenPredicate = #Predicate<DefaultHistoryTransaction> { $0.token > historyToken }
        // The talk has the types themselves in this list, which can't hold a name: it compiles nowhere.
        let entities: [any PersistentModel.Type] = [LivingAccommodation.self, Trip.self]
        let entityNames = entities.map { Schema.entityName(for: $0) }
        let changesPredicate = #Predicate<DefaultHistoryTransaction> {
            $0.changes.contains { change in
                entityNames.contains(change.changedPersistentIdentifier.entityName)
            }
        }
        let fullPredicate = #Predicate<DefaultHistoryTransaction> {
            tokenPredicate.evaluate($0)
                && changesPredicate.evaluate($0)
        }
        let historyDesc = HistoryDescriptor<DefaultHistoryTransaction>(predicate: fullPredicate)
        let transactions = try context.fetchHistory(historyDesc)
        #expect(transactions.count == 1)
        #expect(transactions.first?.changes.map(\.changedPersistentIdentifier.entityName) == ["LivingAccommodation"])
        withExtendedLifetime(container) {}
    }

    @Test func tombstoneKeepsWhatIsPreserved() throws {
        let (container, context) = try filled()
        let trip = try #require(
            try context.fetch(FetchDescriptor<Trip>(predicate: #Predicate { $0.name == "Alps" })).first)
        let id = trip.persistentModelID
        context.delete(trip)
        try context.save()
        let last = try #require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last)
        guard case .delete(let change) = try #require(last.changes.first) else {
            Issue.record("no delete")
            return
        }
        let deletion = try #require(change as? DefaultHistoryDelete<Trip>)
        #expect(deletion.changedPersistentIdentifier == id)
        #expect(deletion.tombstone[\.name] == "Alps")
        #expect(deletion.tombstone[\.startDate] == .day(3))
        #expect(deletion.tombstone[\.destination] == nil)
        #expect(deletion.tombstone.map { $0.keyPath } == [\Trip.name, \Trip.startDate, \Trip.endDate])
        withExtendedLifetime(container) {}
    }

    @Test func deletedHistoryExpiresTokens() throws {
        let (container, context) = try filled()
        let first = try #require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).first?.token)
        for title in ["a", "b", "c"] {
            context.insert(BucketListItem(title: title))
            try context.save()
        }
        let token = try #require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token)
        var descriptor = HistoryDescriptor<DefaultHistoryTransaction>()
        descriptor.predicate = #Predicate {
            $0.token < token
        }
        try context.deleteHistory(descriptor)
        #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).map(\.token) == [token])
        #expect(throws: SwiftDataError.historyTokenExpired) {
            try context.fetchHistory(
                HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token > first }))
        }
        withExtendedLifetime(container) {}
    }

    @Test func updatesNameTheirAttributes() throws {
        let (container, context) = try filled()
        let trip = try #require(
            try context.fetch(FetchDescriptor<Trip>(predicate: #Predicate { $0.name == "Alps" })).first)
        trip.destination = "Tirol"
        try context.save()
        let last = try #require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last)
        guard case .update(let change) = try #require(last.changes.first) else {
            Issue.record("no update")
            return
        }
        let update = try #require(change as? DefaultHistoryUpdate<Trip>)
        #expect(update.updatedAttributes == [\Trip.destination])
        withExtendedLifetime(container) {}
    }
}
