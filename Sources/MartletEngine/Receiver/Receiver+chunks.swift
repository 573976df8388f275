import Foundation
package import GRDB
package import MartletBus
package import MartletCore
import MartletReplica
import MartletStore
package import MartletWire

/// Transactions that are too large for one message arrive in chunks. The store keeps the chunks until all have arrived,
/// so they survive a restart.
extension Receiver {
    /// Keeps the chunk, and returns the whole payload once all chunks are here.
    package func assemble(
        _ message: IncomingMessage, _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int),
        _ report: inout ApplyReport
    ) throws -> [UInt8]? {
        guard try saveChunk(envelope, chunk, message.payload, &report) else { return nil }
        if let assembled, assembled.envelope == envelope,
            try tally().sum(envelope.transaction, count: chunk.count).bytes == assembled.payload.count
        {
            try forgetChunks(envelope)
            return assembled.payload
        }
        let read = try context.statement(
            db, "SELECT bytes FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2 AND count = ?3 ORDER BY chunk")
        read.bind(1, blob: envelope.origin.bytes)
        read.bind(2, envelope.sequence)
        read.bind(3, Int64(chunk.count))
        var payload: [UInt8] = []
        var sizes: Set<Int> = []
        var last = 0
        while try read.step() {
            let bytes = read.blob(0)
            payload += bytes
            if last > 0 { sizes.insert(last) }
            last = bytes.count
        }
        try forgetChunks(envelope)
        // All chunks but the last have one size. If they don't, they come from different sends.
        if envelope.size != nil, sizes.count > 1 { return [] }
        return payload
    }

    /// Returns how many bytes of the transaction are here from this send, without the chunk itself.
    package func chunkBytes(_ envelope: WireEnvelope, _ chunk: (index: Int, count: Int)) throws -> Int {
        let known = try tally().sum(envelope.transaction, count: chunk.count).bytes
        let replaced = try kept(envelope, chunk)
        return known - (replaced?.count == chunk.count ? replaced?.bytes ?? 0 : 0)
    }

    private func tally() throws -> ChunkTally {
        if let known = context.positions.chunks { return known }
        let tally = try ChunkTally(db)
        context.positions.chunks = tally
        return tally
    }

    /// Returns the chunk that is stored at this one's place.
    private func kept(
        _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int)
    ) throws -> (count: Int, bytes: Int)? {
        let find = try context.statement(
            db,
            "SELECT count, length(bytes) FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2 AND chunk = ?3")
        find.bind(1, blob: envelope.origin.bytes)
        find.bind(2, envelope.sequence)
        find.bind(3, Int64(chunk.index))
        return try find.first { (Int($0.integer(0)), Int($0.integer(1))) }
    }

    /// Drops the chunks of other transactions if unfinished ones take more than their limit. The dropped transactions
    /// count as missing, and arrive again when their origin republishes them.
    private func makeRoom(for envelope: WireEnvelope, _ bytes: Int, _ report: inout ApplyReport) throws {
        let limit = engine.messageGuard.configuration.maxTransactionBytes
        for excess in try tally().excess(adding: bytes, to: envelope.transaction, limit: limit) {
            let dropped = WireEnvelope(origin: excess.origin, sequence: excess.sequence)
            try forgetChunks(dropped)
            report.droppedChunks += 1
            // This node's own transaction is not missing here: it was only not read back, and is sent again.
            if dropped.origin != context.node { try leaveOpen(dropped, &report) }
        }
    }

    /// Records that a chunk of a local transaction was read back, without its contents.
    ///
    /// - Returns: true once all of them were.
    package func isWhole(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws -> Bool {
        guard let chunk = envelope.chunk else { return true }
        return try saveChunk(envelope, chunk, [], &report)
    }

    /// - Returns: true if all chunks are here now.
    private func saveChunk(
        _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int), _ bytes: [UInt8], _ report: inout ApplyReport
    ) throws -> Bool {
        try makeRoom(for: envelope, bytes.count, &report)
        let tally = try tally()
        if let replaced = try kept(envelope, chunk) {
            tally.add(
                envelope.transaction, count: replaced.count, ChunkTally.Sum(chunks: -1, bytes: -replaced.bytes))
        }
        let save = try context.statement(
            db,
            """
            INSERT OR REPLACE INTO _martlet_chunks(origin, sequence, chunk, count, format, bytes)
            VALUES (?1, ?2, ?3, ?4, '', ?5)
            """)
        save.bind(1, blob: envelope.origin.bytes)
        save.bind(2, envelope.sequence)
        save.bind(3, Int64(chunk.index))
        save.bind(4, Int64(chunk.count))
        save.bind(5, blob: bytes)
        try save.run()
        origins.hasChunks = true
        tally.add(envelope.transaction, count: chunk.count, ChunkTally.Sum(chunks: 1, bytes: bytes.count))
        return tally.sum(envelope.transaction, count: chunk.count).chunks == chunk.count
    }

    /// Keeps a chunk that a snapshot contains because the snapshot's maker did not have the whole transaction.
    package func saveChunk(ofSnapshot envelope: WireEnvelope, _ bytes: [UInt8], _ report: inout ApplyReport) throws {
        guard let chunk = envelope.chunk, try kept(envelope, chunk) == nil,
            try chunkBytes(envelope, chunk) + bytes.count <= engine.messageGuard.configuration.maxTransactionBytes
        else { return }
        _ = try saveChunk(envelope, chunk, bytes, &report)
    }

    /// Deletes the remaining chunks of a transaction that is now here in full.
    package func forgetChunks(_ envelope: WireEnvelope) throws {
        let hasChunks =
            try origins.hasChunks ?? context.statement(db, "SELECT 1 FROM _martlet_chunks LIMIT 1").first {
                _ in true
            } ?? false
        origins.hasChunks = hasChunks
        guard hasChunks else { return }
        let remove = try context.statement(db, "DELETE FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2")
        remove.bind(1, blob: envelope.origin.bytes)
        remove.bind(2, envelope.sequence)
        try remove.run()
        context.positions.chunks?.remove(envelope.transaction)
    }
}

extension WireEnvelope {
    fileprivate var transaction: ChunkTally.Transaction { ChunkTally.Transaction(origin: origin, sequence: sequence) }
}

/// A transaction that was assembled from its chunks and decoded before it is applied. For a large transaction, this
/// takes about as long as applying it.
///
/// Safe to prepare ahead: only the engine changes chunks, and it does one thing at a time.
package struct AssembledTransaction {
    package let envelope: WireEnvelope
    package let payload: [UInt8]
    package let transaction: Result<DecodedTransaction, WireError>

    /// Nil if chunks other than this one are missing, or if the engine has to check more closely.
    package init?(
        _ db: Database, _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int), _ bytes: [UInt8],
        _ limits: SecurityConfiguration
    ) throws {
        guard let size = envelope.size, size <= limits.maxTransactionBytes, chunk.count > 1, !bytes.isEmpty else {
            return nil
        }
        let others: StatementArguments = [
            Data(envelope.origin.bytes), envelope.sequence, Int64(chunk.count), Int64(chunk.index),
        ]
        let condition = "origin = ? AND sequence = ? AND count = ? AND chunk <> ?"
        let known = try Row.fetchOne(
            db,
            sql: """
                SELECT count(*) AS number, ifnull(sum(length(bytes)), 0) AS size FROM _martlet_chunks WHERE \(condition)
                """, arguments: others)
        guard let known else { return nil }
        let number: Int = known["number"]
        let stored: Int = known["size"]
        guard number == chunk.count - 1, stored + bytes.count == size else { return nil }
        var payload: [UInt8] = []
        payload.reserveCapacity(size)
        let rows = try Row.fetchCursor(
            db, sql: "SELECT chunk, bytes FROM _martlet_chunks WHERE \(condition) ORDER BY chunk", arguments: others)
        var isPlaced = false
        var length: Int?
        func add(_ index: Int, _ part: [UInt8]) -> Bool {
            // All chunks but the last have one size. If they don't, they come from different sends.
            if index < chunk.count - 1 {
                if let length, length != part.count { return false }
                length = part.count
            }
            payload += part
            return true
        }
        while let row = try rows.next() {
            let index: Int = row["chunk"]
            if !isPlaced, index > chunk.index {
                isPlaced = true
                guard add(chunk.index, bytes) else { return nil }
            }
            guard add(index, row.bytes("bytes")) else { return nil }
        }
        if !isPlaced { guard add(chunk.index, bytes) else { return nil } }
        guard payload.count == size else { return nil }
        self.envelope = envelope
        self.payload = payload
        transaction = Result { () throws(WireError) in try DecodedTransaction(payload: payload, isAhead: true) }
    }
}

/// Which chunks of this node's own transactions were read back.
package enum OwnChunks {
    package static func forget(_ db: Database, _ node: NodeID, through sequence: Int64 = .max) throws {
        try db.execute(
            sql: "DELETE FROM _martlet_chunks WHERE origin = ? AND sequence <= ?",
            arguments: [Data(node.bytes), sequence])
    }
}
