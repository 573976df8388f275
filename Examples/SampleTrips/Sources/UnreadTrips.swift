import SwiftData

/// Tracks which trips were changed elsewhere (by the widget, by other devices) since the app last looked: the app shows
/// badges for them.
///
/// Reads the history after the last seen token, without the app's own transactions. Token and unread trips are stored
/// in a file beside the store.
struct UnreadTrips {
    private struct Memory: Codable {
        var token: DefaultHistoryToken?
        var unread: Set<PersistentIdentifier> = []
    }

    private let context: ModelContext
    private let file: URL
    private var memory: Memory

    init(_ model: DataModel, store: URL) throws {
        context = model.context(.app)
        file = store.appendingPathExtension("unread.json")
        memory = (try? Data(contentsOf: file)).flatMap { try? JSONDecoder().decode(Memory.self, from: $0) } ?? Memory()
        try catchUp()
    }

    func contains(_ trip: Trip) -> Bool { memory.unread.contains(trip.persistentModelID) }

    mutating func markRead(_ trip: Trip) throws {
        memory.unread.remove(trip.persistentModelID)
        try save()
    }

    private mutating func catchUp() throws {
        // Fetched before the changes: later transactions are for the next time.
        guard let newest = try newestToken() else { return try save() }
        let transactions: [DefaultHistoryTransaction]
        do {
            transactions = try transactionsFromElsewhere(after: memory.token)
        } catch SwiftDataError.historyTokenExpired {
            // The history was pruned beyond the last seen token, so earlier changes are unknown.
            memory = Memory()
            transactions = try transactionsFromElsewhere(after: nil)
        }
        for transaction in transactions where transaction.token <= newest {
            for change in transaction.changes { try note(change) }
        }
        memory.token = newest
        try save()
    }

    private func transactionsFromElsewhere(after token: DefaultHistoryToken?) throws -> [DefaultHistoryTransaction] {
        let app = DataModel.Author.app.rawValue
        var descriptor = HistoryDescriptor<DefaultHistoryTransaction>()
        if let token {
            descriptor.predicate = #Predicate { transaction in
                transaction.token > token && transaction.author != app
            }
        } else {
            descriptor.predicate = #Predicate { transaction in transaction.author != app }
        }
        return try context.fetchHistory(descriptor)
    }

    private func newestToken() throws -> DefaultHistoryToken? {
        var descriptor = HistoryDescriptor<DefaultHistoryTransaction>()
        descriptor.sortBy = [.init(\.transactionIdentifier, order: .reverse)]
        descriptor.fetchLimit = 1
        return try context.fetchHistory(descriptor).last?.token
    }

    private mutating func note(_ change: HistoryChange) throws {
        let changed = change.changedPersistentIdentifier
        switch change {
        case .insert(_ as DefaultHistoryInsert<Trip>), .update(_ as DefaultHistoryUpdate<Trip>),
            .insert(_ as DefaultHistoryInsert<BusinessTrip>), .update(_ as DefaultHistoryUpdate<BusinessTrip>),
            .insert(_ as DefaultHistoryInsert<PersonalTrip>), .update(_ as DefaultHistoryUpdate<PersonalTrip>):
            memory.unread.insert(changed)
        case .insert(_ as DefaultHistoryInsert<LivingAccommodation>),
            .update(_ as DefaultHistoryUpdate<LivingAccommodation>):
            let trips = try context.fetch(
                FetchDescriptor<Trip>(predicate: #Predicate { $0.livingAccommodation?.persistentModelID == changed }))
            for trip in trips { memory.unread.insert(trip.persistentModelID) }
        case .delete:
            memory.unread.remove(changed)
        default: break
        }
    }

    private func save() throws { try JSONEncoder().encode(memory).write(to: file, options: .atomic) }
}
