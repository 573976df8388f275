import Foundation
package import GRDB
package import MartletCore
package import MartletStore
package import MartletWire

/// The chunks of transactions that are not complete: the only code that writes `_martlet_chunks`, apart from the
/// migrations to newer formats. ``StoredChunks`` reads whole payloads.
///
/// Of this node's own transactions, the table has only which chunks were read back, without their contents.
///
/// An object for one batch of messages on the engine's connection; it keeps the ``ChunkTally``. The static functions
/// need no engine.
package final class Chunks {
    private let db: Database
    private let statement: StatementCache
    private let known: KnownChunks
    /// Whether there is any chunk. Nil until the table was checked.
    private var hasAny: Bool?

    package init(_ db: Database, _ statement: StatementCache, _ known: KnownChunks) {
        self.db = db
        self.statement = statement
        self.known = known
    }

    package func tally() throws -> ChunkTally {
        if let tally = known.tally { return tally }
        let tally = try ChunkTally(db)
        known.tally = tally
        return tally
    }

    /// Returns the chunk that is stored at this one's place.
    package func find(
        _ transaction: ChunkTally.Transaction, _ chunk: (index: Int, count: Int)
    ) throws -> (count: Int, bytes: Int)? {
        let find = try statement(
            db,
            "SELECT count, length(bytes) FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2 AND chunk = ?3")
        find.bind(1, blob: transaction.origin.bytes)
        find.bind(2, transaction.sequence)
        find.bind(3, Int64(chunk.index))
        return try find.first { (Int($0.integer(0)), Int($0.integer(1))) }
    }

    /// Stores a chunk, in place of the one that is stored there. Chunks of an earlier send, which cut the transaction
    /// into another number, or elsewhere, are deleted: they will never be complete, and together they would have no
    /// bound.
    ///
    /// - Parameters:
    ///   - replacesAll: whether those that are stored are of another send; see
    ///     ``areOfOtherSend(_:than:byteCount:size:)``.
    ///   - partition: where the topic has the chunk. Nil if it comes from elsewhere.
    /// - Returns: true if all chunks of the transaction are here now.
    package func save(
        _ transaction: ChunkTally.Transaction, _ chunk: (index: Int, count: Int), _ bytes: [UInt8],
        replacesAll: Bool, partition: Int32?
    ) throws -> Bool {
        let tally = try tally()
        if replacesAll { try remove(transaction) }
        if tally.hasOther(transaction, count: chunk.count) {
            let remove = try statement(
                db, "DELETE FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2 AND count <> ?3")
            remove.bind(1, blob: transaction.origin.bytes)
            remove.bind(2, transaction.sequence)
            remove.bind(3, Int64(chunk.count))
            try remove.run()
            tally.keep(transaction, count: chunk.count)
        }
        if let replaced = try find(transaction, chunk) {
            tally.add(transaction, count: replaced.count, ChunkTally.Sum(chunks: -1, bytes: -replaced.bytes))
        }
        let save = try statement(
            db,
            """
            INSERT OR REPLACE INTO _martlet_chunks(origin, sequence, chunk, count, format, bytes)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """)
        save.bind(1, blob: transaction.origin.bytes)
        save.bind(2, transaction.sequence)
        save.bind(3, Int64(chunk.index))
        save.bind(4, Int64(chunk.count))
        // The column once had the name of the encoding, which nobody reads.
        save.bind(5, text: partition.map(String.init) ?? "")
        save.bind(6, blob: bytes)
        try save.run()
        hasAny = true
        tally.add(transaction, count: chunk.count, ChunkTally.Sum(chunks: 1, bytes: bytes.count))
        return tally.sum(transaction, count: chunk.count).chunks == chunk.count
    }

    /// Returns true if the stored chunks come from another send than this one: one that cut the transaction into as
    /// many chunks, but elsewhere, or that sent another transaction under the same sequence.
    ///
    /// - Parameters:
    ///   - byteCount: the size of the chunk.
    ///   - size: the size of the whole transaction. Without it, only the number of chunks tells.
    package func areOfOtherSend(
        _ transaction: ChunkTally.Transaction, than chunk: (index: Int, count: Int), byteCount: Int, size: Int?
    ) throws -> Bool {
        // An empty chunk is refused.
        guard let size, byteCount > 0 else { return false }
        let count = chunk.count - 1
        let isLast = chunk.index == count
        // All chunks but the last have one length, so two of those that are stored are enough.
        let length = isLast ? (size - byteCount) / max(1, count) : byteCount
        let lastLength = isLast ? byteCount : size - byteCount * count
        let first = try statement(
            db,
            """
            SELECT length(bytes) FROM _martlet_chunks
            WHERE origin = ?1 AND sequence = ?2 AND count = ?3 AND chunk < ?3 - 1 ORDER BY chunk LIMIT 1
            """)
        first.bind(1, blob: transaction.origin.bytes)
        first.bind(2, transaction.sequence)
        first.bind(3, Int64(chunk.count))
        if let stored = try first.first({ Int($0.integer(0)) }), stored != length { return true }
        guard let last = try find(transaction, (index: count, count: chunk.count)) else { return false }
        return last.count == chunk.count && last.bytes != lastLength
    }

    /// Returns the partition from which the chunks of another send of the transaction came, which cut it into another
    /// number. Nil if it is not known.
    package func partitionOfOther(_ transaction: ChunkTally.Transaction, count: Int) throws -> Int32? {
        let find = try statement(
            db,
            """
            SELECT CAST(format AS INTEGER) FROM _martlet_chunks
            WHERE origin = ?1 AND sequence = ?2 AND count <> ?3 AND format <> '' LIMIT 1
            """)
        find.bind(1, blob: transaction.origin.bytes)
        find.bind(2, transaction.sequence)
        find.bind(3, Int64(count))
        return try find.first { Int32(exactly: $0.integer(0)) } ?? nil
    }

    /// Returns the payload of a transaction. Nil if a chunk is missing.
    ///
    /// - Parameter count: only the chunks of the send that cut the transaction into so many.
    package func payload(of transaction: ChunkTally.Transaction, count: Int) throws -> StoredChunks? {
        try StoredChunks(db, transaction, count: count)
    }

    /// Deletes the chunks of a transaction.
    package func remove(_ transaction: ChunkTally.Transaction) throws {
        let hasAny =
            try hasAny ?? statement(db, "SELECT 1 FROM _martlet_chunks LIMIT 1").first { _ in true } ?? false
        self.hasAny = hasAny
        guard hasAny else { return }
        let remove = try statement(db, "DELETE FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2")
        remove.bind(1, blob: transaction.origin.bytes)
        remove.bind(2, transaction.sequence)
        try remove.run()
        known.tally?.remove(transaction)
    }

    // MARK: Without an engine

    /// Returns the transactions of other nodes that have chunks here.
    package static func transactions(_ db: Database, besidesThoseOf node: NodeID) throws -> [ChunkTally.Transaction] {
        try Row.fetchAll(
            db, sql: "SELECT DISTINCT origin, sequence FROM _martlet_chunks WHERE origin <> ?",
            arguments: [Data(node.bytes)]
        ).compactMap { row in
            NodeID(bytes: row["origin"] as Data).map {
                ChunkTally.Transaction(origin: $0, sequence: row["sequence"])
            }
        }
    }

    /// Passes the chunks of other nodes' transactions to a snapshot.
    package static func forEach(
        _ db: Database, besidesThoseOf node: NodeID, _ body: (WireSnapshotChunk) throws -> Void
    ) throws {
        let read = try PreparedStatement(
            db, "SELECT origin, sequence, chunk, count, bytes FROM _martlet_chunks WHERE origin <> ?1")
        read.bind(1, blob: node.bytes)
        while try read.step() {
            var chunk = WireSnapshotChunk()
            chunk.origin = Data(read.blob(0))
            chunk.sequence = UInt64(read.integer(1))
            chunk.index = UInt32(read.integer(2))
            chunk.count = UInt32(read.integer(3))
            chunk.payload = Data(read.blob(4))
            try body(chunk)
        }
    }

    package static func count(_ db: Database, of origin: NodeID) throws -> Int {
        try Int.fetchOne(
            db, sql: "SELECT count(*) FROM _martlet_chunks WHERE origin = ?", arguments: [Data(origin.bytes)]) ?? 0
    }

    /// Deletes the chunks of one transaction.
    package static func delete(_ db: Database, of transaction: ChunkTally.Transaction) throws {
        try db.execute(
            sql: "DELETE FROM _martlet_chunks WHERE origin = ? AND sequence = ?",
            arguments: [Data(transaction.origin.bytes), transaction.sequence])
    }

    /// Deletes the chunks of an origin's transactions up to a sequence.
    package static func delete(_ db: Database, of origin: NodeID, through sequence: Int64 = .max) throws {
        try db.execute(
            sql: "DELETE FROM _martlet_chunks WHERE origin = ? AND sequence <= ?",
            arguments: [Data(origin.bytes), sequence])
    }
}

extension WireEnvelope {
    package var transaction: ChunkTally.Transaction { ChunkTally.Transaction(origin: origin, sequence: sequence) }
}

/// Which chunks wait for the rest of their transactions, cached from the file. Only ``Chunks`` sets it.
package final class KnownChunks {
    /// Nil until it was asked for.
    fileprivate var tally: ChunkTally?

    /// Drops the cache: somebody else may have written.
    func forget() { tally = nil }
}
