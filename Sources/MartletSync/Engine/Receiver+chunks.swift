import Foundation
import GRDB
import MartletStore

/// Transactions that are too large for one message come in chunks, which are kept until all of them are here. They survive a
/// restart.
extension Receiver {
    /// Keeps the chunk, and returns the whole payload once all are here.
    func assemble(_ message: IncomingMessage, _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int))
        throws -> [UInt8]?
    {
        guard try saveChunk(envelope, chunk, message.payload) else { return nil }
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
        // All but the last are of one size, or they are of different sendings.
        if envelope.size != nil, sizes.count > 1 { return [] }
        return payload
    }

    /// How many bytes of the transaction are here.
    func chunkBytes(_ envelope: WireEnvelope) throws -> Int {
        let sum = try context.statement(
            db, "SELECT ifnull(sum(length(bytes)), 0) FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2")
        sum.bind(1, blob: envelope.origin.bytes)
        sum.bind(2, envelope.sequence)
        return Int(try sum.first { $0.integer(0) } ?? 0)
    }

    /// Notes which chunk of an own transaction was read back, without what is in it.
    ///
    /// - Returns: true once all were.
    func isWhole(_ envelope: WireEnvelope) throws -> Bool {
        guard let chunk = envelope.chunk else { return true }
        return try saveChunk(envelope, chunk, [])
    }

    /// - Returns: true where all chunks are there now.
    private func saveChunk(_ envelope: WireEnvelope, _ chunk: (index: Int, count: Int), _ bytes: [UInt8]) throws -> Bool
    {
        let save = try context.statement(
            db,
            "INSERT OR REPLACE INTO _martlet_chunks(origin, sequence, chunk, count, format, bytes) VALUES (?1, ?2, ?3, ?4, '', ?5)"
        )
        save.bind(1, blob: envelope.origin.bytes)
        save.bind(2, envelope.sequence)
        save.bind(3, Int64(chunk.index))
        save.bind(4, Int64(chunk.count))
        save.bind(5, blob: bytes)
        try save.run()
        origins.hasChunks = true
        let count = try context.statement(
            db, "SELECT count(*) FROM _martlet_chunks WHERE origin = ?1 AND sequence = ?2 AND count = ?3")
        count.bind(1, blob: envelope.origin.bytes)
        count.bind(2, envelope.sequence)
        count.bind(3, Int64(chunk.count))
        return try count.first { $0.integer(0) } == Int64(chunk.count)
    }

    /// Deletes what is left of the transaction in chunks: it is here, whole.
    func forgetChunks(_ envelope: WireEnvelope) throws {
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
    }
}

/// Which chunks of a node's own transactions were read back.
enum OwnChunks {
    static func forget(_ db: Database, _ node: NodeID, through sequence: Int64 = .max) throws {
        try db.execute(
            sql: "DELETE FROM _martlet_chunks WHERE origin = ? AND sequence <= ?",
            arguments: [Data(node.bytes), sequence])
    }
}
