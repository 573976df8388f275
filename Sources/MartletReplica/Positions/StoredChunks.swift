package import GRDB
import MartletCore
import MartletStore
import MartletWire

/// The payload of a transaction whose chunks are all here: in the store, apart from one that may have just arrived.
///
/// Reads a few chunks at a time, on the connection's queue, and must not be used once the chunks have changed. May be
/// released anywhere: it keeps no statement, which SQLite would finalize then and there.
package final class StoredChunks: StoredPayload {
    private static let place = """
        FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2 AND count = ?3 AND chunk >= ?4 ORDER BY chunk
        """
    /// How many bytes one query reads, apart from the rest of a chunk. To find a chunk, SQLite reads some others as a
    /// whole. A query that stays open from one chunk to the next would keep the applier from dropping an index.
    private static let maxAhead = 2 << 20
    /// What a chunk takes in memory beside its contents. Some senders' chunks have one byte.
    private static let overheadBytes = 100

    package let count: Int
    /// True if all chunks but the last have one size. If they don't, they come from different sends.
    package let isUniform: Bool
    private let chunkCount: Int
    private let arrived: (index: Int, bytes: [UInt8])?
    private let transaction: ChunkTally.Transaction
    // Safe because they are only touched on the connection's queue.
    nonisolated(unsafe) private let db: Database
    nonisolated(unsafe) private var index = 0
    /// Chunks that were read, in reverse order.
    nonisolated(unsafe) private var ahead: [(index: Int, bytes: [UInt8])] = []

    /// - Parameters:
    ///   - count: only the chunks of the send that cut the transaction into so many.
    ///   - arrived: a chunk that the store may not have yet.
    /// - Returns: nil if a chunk is missing.
    package init?(
        _ db: Database, _ transaction: ChunkTally.Transaction, count: Int, arrived: (index: Int, bytes: [UInt8])? = nil
    ) throws {
        // The lengths come with the chunks' headers: this doesn't read the contents.
        let lengths = try Self.statement(db, "chunk, length(bytes)", transaction, count, from: 0)
        var sum = LengthSum(count)
        while try lengths.step() {
            let index = Int(lengths.integer(0))
            if index == arrived?.index { continue }
            if let arrived, sum.next == arrived.index { sum.add(arrived.bytes.count) }
            guard index == sum.next else {
                lengths.reset()
                return nil
            }
            sum.add(Int(lengths.integer(1)))
        }
        if let arrived, sum.next == arrived.index { sum.add(arrived.bytes.count) }
        guard sum.next == count else { return nil }
        self.count = sum.bytes
        isUniform = sum.isUniform
        chunkCount = count
        self.arrived = arrived
        self.transaction = transaction
        self.db = db
    }

    private static func statement(
        _ db: Database, _ columns: String, _ transaction: ChunkTally.Transaction, _ count: Int, from first: Int
    ) throws -> PreparedStatement {
        let statement = try PreparedStatement(db, "SELECT \(columns) \(place)")
        statement.bind(1, blob: transaction.origin.bytes)
        statement.bind(2, transaction.sequence)
        statement.bind(3, Int64(count))
        statement.bind(4, Int64(first))
        return statement
    }

    package func rewind() {
        index = 0
        ahead = []
    }

    package func next() throws -> [UInt8]? {
        guard index < chunkCount else { return nil }
        defer { index += 1 }
        if let arrived, arrived.index == index { return arrived.bytes }
        if ahead.isEmpty { try readAhead() }
        guard let next = ahead.popLast(), next.index == index else {
            throw StoreError(
                .corrupt, "Chunk \(index) of a transaction from another node is missing.",
                hint: "Restore the file from a backup.")
        }
        return next.bytes
    }

    private func readAhead() throws {
        let read = try Self.statement(db, "chunk, bytes", transaction, chunkCount, from: index)
        var bytes = 0
        while bytes < Self.maxAhead, try read.step() {
            let chunk = (index: Int(read.integer(0)), bytes: read.blob(1))
            guard chunk.index != arrived?.index else { continue }
            bytes += chunk.bytes.count + Self.overheadBytes
            ahead.append(chunk)
        }
        ahead.reverse()
    }

    /// Adds up the lengths of consecutive chunks.
    private struct LengthSum {
        private let count: Int
        private var first: Int?
        private(set) var next = 0
        private(set) var bytes = 0
        private(set) var isUniform = true

        init(_ count: Int) { self.count = count }

        mutating func add(_ length: Int) {
            if next < count - 1 {
                if let first, first != length { isUniform = false }
                first = first ?? length
            }
            bytes += length
            next += 1
        }
    }
}
