package import GRDB

/// Roughly when transactions came into this store.
///
/// The time of a remote transaction is its author's, who may have been offline for months, and a snapshot has rows that
/// are years old. Their age in this store begins when they arrive: otherwise an agent would delete them from the
/// history at once, before a reader has seen them.
///
/// Pure, but for loading and saving.
package struct HistoryArrivals: Codable, Sendable, Equatable {
    /// The newest row of the log at a time.
    private struct Look: Codable, Equatable {
        /// In milliseconds since 1970.
        var time: Int64
        var newest: Int64
    }

    /// In ascending order.
    private var looks: [Look] = []

    package init() {}

    /// A transaction may stay longer than the bound by one of so many parts of it.
    private static let parts: Int64 = 16

    /// Records that the log ends with this row now.
    ///
    /// - Parameter age: The bound, in milliseconds.
    package mutating func note(newest: Int64, at now: Int64, age: Int64) {
        // The clock was set back. What was seen then is here at least since now.
        for index in looks.indices { looks[index].time = max(0, min(looks[index].time, now)) }
        let isDue = looks.last.map { newest > $0.newest && now - $0.time >= max(1, age / Self.parts) } ?? true
        if isDue { looks.append(Look(time: now, newest: newest)) }
        // All that the last one of them says about transactions from before the bound.
        if let last = looks.lastIndex(where: { $0.time <= now - age }) { looks.removeFirst(last) }
    }

    /// Returns the last row of the log that came before this time. What was there at the first look may have come at
    /// any time before it, so that only its own time counts. No bound if nobody has looked yet.
    package func last(before time: Int64) -> Int64 {
        (looks.last { $0.time <= time } ?? looks.first)?.newest ?? .max
    }

    // MARK: The store

    package static func load(_ db: Database) throws -> HistoryArrivals {
        try Meta.text(db, MetaKey.historyArrivals).map { try Catalog.decode(HistoryArrivals.self, $0) } ?? .init()
    }

    /// Records what is there before anything is synced, unless somebody has looked before.
    package static func begin(_ db: Database, at now: Int64) throws {
        if try Meta.text(db, MetaKey.historyArrivals) == nil { _ = try look(db, at: now, age: 0) }
    }

    /// Loads them, records the present, and saves them if that is news.
    package static func look(_ db: Database, at now: Int64, age: Int64) throws -> HistoryArrivals {
        let newest = try db.lastChange()
        let known = try load(db)
        var arrivals = known
        arrivals.note(newest: newest, at: now, age: age)
        if arrivals != known { try Meta.set(db, MetaKey.historyArrivals, try Catalog.encode(arrivals)) }
        return arrivals
    }
}
