import GRDB
import MartletStore

/// What is kept of transactions of which not all chunks have come: how many chunks there are of each, and how many
/// bytes.
///
/// Known without counting, since whoever sends chunks can send any number of small ones. Confined to the engine's
/// connection.
final class ChunkTally {
    struct Sum: Equatable {
        var chunks = 0
        var bytes = 0

        /// What they take in the store: a chunk's place counts, too.
        var storedBytes: Int { bytes + chunks * ChunkTally.overheadBytes }

        static func += (sum: inout Sum, other: Sum) {
            sum.chunks += other.chunks
            sum.bytes += other.bytes
        }
    }

    struct Transaction: Hashable {
        var origin: NodeID
        var sequence: Int64
    }

    /// A chunk takes some 100 bytes beside its contents. That more counts bounds how many there may be, in memory too;
    /// all that nodes send have 1000 bytes and more.
    private static let overheadBytes = 1000

    /// By origin, sequence and the number of chunks that there are in all: sendings with another size of chunks have
    /// another one.
    private var sums: [NodeID: [Int64: [Int: Sum]]] = [:]
    private var stored: [NodeID: Int] = [:]
    private(set) var storedBytes = 0

    /// Without GROUP BY, for which SQLite sorts the chunks with all their bytes, only to find how long they are.
    static let query = "SELECT origin, sequence, count, length(bytes) AS bytes FROM _martlet_chunks"

    init(_ db: Database) throws {
        let rows = try Row.fetchCursor(db, sql: Self.query)
        while let row = try rows.next() {
            guard let origin = NodeID(bytes: row.bytes("origin")) else { continue }
            add(
                Transaction(origin: origin, sequence: row["sequence"]), count: row["count"],
                Sum(chunks: 1, bytes: row["bytes"]))
        }
    }

    func sum(_ transaction: Transaction, count: Int) -> Sum {
        sums[transaction.origin]?[transaction.sequence]?[count] ?? Sum()
    }

    /// - Parameter sum: with negative numbers for what is not there any more.
    func add(_ transaction: Transaction, count: Int, _ sum: Sum) {
        sums[transaction.origin, default: [:]][transaction.sequence, default: [:]][count, default: Sum()] += sum
        note(transaction.origin, sum.storedBytes)
    }

    func remove(_ transaction: Transaction) {
        guard let sums = sums[transaction.origin]?.removeValue(forKey: transaction.sequence) else { return }
        if self.sums[transaction.origin]?.isEmpty ?? false { self.sums[transaction.origin] = nil }
        note(transaction.origin, -sums.values.reduce(0) { $0 + $1.storedBytes })
    }

    private func note(_ origin: NodeID, _ bytes: Int) {
        let sum = (stored[origin] ?? 0) + bytes
        stored[origin] = sum == 0 ? nil : sum
        storedBytes += bytes
    }

    /// What has to go before a chunk comes: the oldest transactions of its origin where there is more than twice the
    /// limit of it, those of whichever origins have most where there is more than four times the limit of all. So many
    /// at once that the next chunks find room.
    ///
    /// - Parameters:
    ///   - kept: the transaction of the chunk.
    ///   - limit: of one transaction.
    func excess(adding bytes: Int, to kept: Transaction, limit: Int) -> [Transaction] {
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
