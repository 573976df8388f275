import Foundation
import GRDB
import MartletCore
package import MartletStore

/// Reads the outbox on a connection of its own, so that publishing and applying don't wait for each other.
///
/// Used by one thread at a time.
package final class OutboxReader: Sendable {
    private let database: DatabaseQueue
    private let readsContexts: Bool
    // Safe because it is only touched on the connection's queue. Nobody reads while the reader is closed: closing takes
    // the last reference.
    nonisolated(unsafe) private var statement: PreparedStatement?

    /// - Parameter readsContexts: whether entries include the context of their transaction.
    package init(path: String, store: StoreConfiguration, readsContexts: Bool = false) throws {
        self.readsContexts = readsContexts
        database = try Connection.open(path: path, configuration: store, role: .reader)
    }

    /// Returns the entries after this sequence, as many as fit into the bytes; at least one, if there is one.
    package func entries(after sequence: Int64, maxBytes: Int, maxCount: Int) throws -> [OutboxEntry] {
        // A single statement is its own transaction.
        try read { db in
            let read = try kept(&statement, db, readsContexts ? Self.queryWithContext : Self.query)
            read.bind(1, sequence)
            read.bind(2, Int64(maxCount))
            defer { read.reset() }
            var entries: [OutboxEntry] = []
            var bytes = 0
            while bytes < maxBytes, try read.step() {
                let payload = read.blob(1)
                bytes += payload.count
                let context = readsContexts ? read.optionalText(2) : nil
                entries.append(OutboxEntry(sequence: read.integer(0), payload: payload, context: context))
                // A payload in parts fills the room by itself.
                if payload.isEmpty { break }
            }
            return entries
        }
    }

    /// Returns the payload of an entry. If it is stored in parts, they are read on demand.
    package func open(_ entry: OutboxEntry) throws -> OutboxPayload {
        guard entry.payload.isEmpty else {
            return OutboxPayload(sequence: entry.sequence, stored: entry.payload)
        }
        return try read { try OutboxPayload($0, sequence: entry.sequence) }
    }

    package func bytes(_ range: Range<Int>, of payload: inout OutboxPayload) throws -> [UInt8] {
        if let stored = payload.stored { return range == stored.indices ? stored : Array(stored[range]) }
        return try read { try payload.bytes(range, $0) }
    }

    private func read<T>(_ body: (Database) throws -> T) throws -> T {
        do {
            return try database.inDatabase(body)
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    private static let query = """
        SELECT sequence, payload FROM _martlet_outbox WHERE sequence > ?1 AND \(UnretainedRanges.isKept)
        ORDER BY sequence LIMIT ?2
        """

    /// Republished changes, and rows that a filter releases, share the log transaction of an earlier entry. Its context
    /// doesn't belong to them.
    private static let queryWithContext = """
        SELECT o.sequence, o.payload, l.c2 FROM _martlet_outbox o
        LEFT JOIN \(InternalName.log) l ON l.id = o.txn AND l.e = 0 AND l.c4 IS NULL
          AND NOT EXISTS (SELECT 1 FROM _martlet_outbox p WHERE p.sequence = o.sequence - 1 AND p.txn >= o.txn)
        WHERE o.sequence > ?1
        AND NOT EXISTS (SELECT 1 FROM _martlet_unkept AS u WHERE o.sequence BETWEEN u.first AND u.last)
        ORDER BY o.sequence LIMIT ?2
        """

    deinit {
        // SQLite doesn't close a connection that has compiled statements.
        database.inDatabase { _ in statement = nil }
        try? database.close()
    }
}
