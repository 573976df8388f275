package import GRDB
package import MartletCore
import MartletStore

/// How many chunks, and how many bytes, are kept of each transaction that is still incomplete.
///
/// Kept as running totals instead of being counted, since a sender of chunks can send any number of small ones.
/// Confined to the engine's connection.
package final class ChunkTally {
    package struct Sum: Equatable {
        package var chunks = 0
        package var bytes = 0

        package init(chunks: Int = 0, bytes: Int = 0) {
            self.chunks = chunks
            self.bytes = bytes
        }

        /// The space that the chunks take in the store, including a fixed overhead for each.
        package var storedBytes: Int { bytes + chunks * ChunkTally.overheadBytes }

        package static func += (sum: inout Sum, other: Sum) {
            sum.chunks += other.chunks
            sum.bytes += other.bytes
        }
    }

    package struct Transaction: Hashable {
        package var origin: NodeID
        package var sequence: Int64

        package init(origin: NodeID, sequence: Int64) {
            self.origin = origin
            self.sequence = sequence
        }
    }

    /// A chunk takes some 100 bytes beside its contents. Counting more than that bounds how many chunks there may be,
    /// also in memory; every chunk that a node sends has 1000 bytes or more.
    private static let overheadBytes = 1000

    /// By origin, sequence and total number of chunks: when a transaction is sent again with another chunk size, that
    /// number differs.
    private var sums: [NodeID: [Int64: [Int: Sum]]] = [:]
    private var stored: [NodeID: Int] = [:]
    package private(set) var storedBytes = 0

    /// Without GROUP BY: for that, SQLite sorts the chunks with all their bytes, only to find their lengths.
    package static let query = "SELECT origin, sequence, count, length(bytes) AS bytes FROM _martlet_chunks"

    package init(_ db: Database) throws {
        let rows = try Row.fetchCursor(db, sql: Self.query)
        while let row = try rows.next() {
            guard let origin = NodeID(bytes: row.bytes("origin")) else { continue }
            add(
                Transaction(origin: origin, sequence: row["sequence"]), count: row["count"],
                Sum(chunks: 1, bytes: row["bytes"]))
        }
    }

    package func sum(_ transaction: Transaction, count: Int) -> Sum {
        sums[transaction.origin]?[transaction.sequence]?[count] ?? Sum()
    }

    /// - Parameter sum: negative numbers for chunks that were removed.
    package func add(_ transaction: Transaction, count: Int, _ sum: Sum) {
        sums[transaction.origin, default: [:]][transaction.sequence, default: [:]][count, default: Sum()] += sum
        note(transaction.origin, sum.storedBytes)
    }

    /// Returns true if there are chunks of a send that cut the transaction into another number of chunks.
    package func hasOther(_ transaction: Transaction, count: Int) -> Bool {
        sums[transaction.origin]?[transaction.sequence]?.contains { $0.key != count && $0.value.chunks > 0 } ?? false
    }

    /// Drops all chunks of the transaction but those of one send.
    package func keep(_ transaction: Transaction, count: Int) {
        let kept = sum(transaction, count: count)
        remove(transaction)
        if kept.chunks > 0 { add(transaction, count: count, kept) }
    }

    package func remove(_ transaction: Transaction) {
        guard let sums = sums[transaction.origin]?.removeValue(forKey: transaction.sequence) else { return }
        if self.sums[transaction.origin]?.isEmpty ?? false { self.sums[transaction.origin] = nil }
        note(transaction.origin, -sums.values.reduce(0) { $0 + $1.storedBytes })
    }

    private func note(_ origin: NodeID, _ bytes: Int) {
        let sum = (stored[origin] ?? 0) + bytes
        stored[origin] = sum == 0 ? nil : sum
        storedBytes += bytes
    }

    /// Returns the transactions to drop before a chunk is added. If the chunk's origin would exceed twice the limit,
    /// these are the origin's oldest ones; if all origins together would exceed four times the limit, the oldest ones
    /// of the origins that take the most space. Drops enough at once to leave room for the next chunks.
    ///
    /// - Parameters:
    ///   - kept: the transaction that the chunk belongs to. It is never dropped.
    ///   - limit: the size limit of one transaction, in bytes.
    package func excess(adding bytes: Int, to kept: Transaction, limit: Int) -> [Transaction] {
        let isOrigins = (stored[kept.origin] ?? 0) + bytes > 2 * limit
        guard isOrigins || storedBytes + bytes > 4 * limit else { return [] }
        var left = isOrigins ? stored[kept.origin] ?? 0 : storedBytes
        let enough = isOrigins ? limit : 3 * limit
        var excess: [Transaction] = []
        for origin in isOrigins ? [kept.origin] : stored.sorted(by: { $0.value > $1.value }).map(\.key) {
            for (sequence, sums) in (sums[origin] ?? [:]).sorted(by: { $0.key < $1.key }) {
                let transaction = Transaction(origin: origin, sequence: sequence)
                guard transaction != kept else { continue }
                if left <= enough { return excess }
                left -= sums.values.reduce(0) { $0 + $1.storedBytes }
                excess.append(transaction)
            }
        }
        return excess
    }
}
