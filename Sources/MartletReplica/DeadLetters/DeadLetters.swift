import Foundation
package import GRDB
package import MartletBus
import MartletCore
package import MartletStore
package import MartletWire

/// The dead-letter queue, which keeps messages that can't be understood: the only code that reads and writes
/// `_martlet_quarantine`, apart from the migrations to newer formats.
///
/// A value for one transaction of the engine's connection; it keeps count of the space that dead letters take. The
/// static functions need no engine.
package struct DeadLetters {
    private let db: Database
    private let statement: StatementCache
    private let size: DeadLetterSize

    package init(_ db: Database, _ statement: StatementCache, _ size: DeadLetterSize) {
        self.db = db
        self.statement = statement
        self.size = size
    }

    /// Adds a message.
    ///
    /// - Parameters:
    ///   - message: what is kept of it.
    ///   - source: says when the broker appended it, and whether its origin is proven.
    ///   - missingKey: the ID of the key that would decrypt it. Nil if no key would.
    ///   - envelope: the transaction that it names. Nil if it names none.
    ///   - position: partition -1 if the payload was no message of its own.
    package func add(
        _ message: KeptMessage, _ source: QuarantinedSource, missingKey: String?, of envelope: WireEnvelope?,
        topic: String, at position: PartitionPosition, now: Int64
    ) throws {
        let used = try usedBytes()
        let whole: [UInt8] = if case .whole(let bytes) = message.payload { bytes } else { [] }
        try db.execute(
            sql: """
                INSERT INTO _martlet_quarantine(
                  topic, partition, offset, reason, headers, payload, since, key, appended, proof, missing_key,
                  kept, bytes,
                  digest, origin, sequence)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                topic, position.partition, position.offset, message.reason, message.headers, Data(whole), now,
                message.key.map { Data($0) }, source.appended, source.proof.rawValue, missingKey,
                message.part.rawValue, message.byteCount, message.digest.map { Data($0) },
                envelope.map { Data($0.origin.bytes) }, envelope?.sequence,
            ])
        if case .stored(let stored) = message.payload {
            try PayloadParts.save(db, stored, of: .quarantined(db.lastInsertedRowID))
        }
        size.bytes = used + message.storedBytes
    }

    /// Counts a message of which nothing is kept. All of a partition share one entry.
    ///
    /// - Parameter reason: for a new entry.
    package func count(
        _ payload: PayloadCut, reason: String, topic: String, at position: PartitionPosition, now: Int64
    ) throws {
        let found = try Row.fetchOne(
            db,
            sql: "SELECT id, digest FROM _martlet_quarantine WHERE topic = ? AND partition = ? AND kept = ?",
            arguments: [topic, position.partition, KeptPart.none.rawValue])
        let digest = Data(
            KeptMessage.digest(of: (found?.bytes("digest") ?? []) + payload.digest))
        if let found {
            return try db.execute(
                sql: """
                    UPDATE _martlet_quarantine SET messages = messages + 1, bytes = bytes + ?, digest = ? WHERE id = ?
                    """,
                arguments: [payload.byteCount, digest, found["id"] as Int64])
        }
        try db.execute(
            sql: """
                INSERT INTO _martlet_quarantine(
                  topic, partition, offset, reason, headers, payload, since, kept, bytes, digest)
                VALUES (?, ?, ?, ?, '', x'', ?, ?, ?, ?)
                """,
            arguments: [
                topic, position.partition, position.offset, reason, now, KeptPart.none.rawValue, payload.byteCount,
                digest,
            ])
    }

    /// Returns true if the message of this position is here already.
    package func contains(_ message: KeptMessage, topic: String, at position: PartitionPosition) throws -> Bool {
        let whole: [UInt8] = if case .whole(let bytes) = message.payload { bytes } else { [] }
        let found = try Int64.fetchAll(
            db,
            sql: """
                SELECT id FROM _martlet_quarantine WHERE topic = ? AND partition = ? AND offset = ?
                AND kept = ? AND digest IS ? AND payload = ?
                """,
            arguments: [
                topic, position.partition, position.offset, message.part.rawValue, message.digest.map { Data($0) },
                Data(whole),
            ])
        guard whole.isEmpty else { return !found.isEmpty }
        return try found.contains { id in
            try PayloadParts.payload(db, of: .quarantined(id), whole: []).equals(message.payload)
        }
    }

    /// Returns true if this part of a transaction, which was no message of its own, is here already.
    package func containsPart(_ payload: [UInt8]) throws -> Bool {
        let find = try statement(db, "SELECT 1 FROM _martlet_quarantine WHERE partition < 0 AND payload = ?1")
        find.bind(1, blob: payload)
        return try find.first { _ in true } != nil
    }

    /// Returns the space that the dead letters take in the store, in bytes.
    package func usedBytes() throws -> Int {
        if let known = size.bytes { return known }
        let sum = try Int.fetchOne(
            db,
            sql: """
                SELECT ifnull(sum(length(payload) + length(CAST(headers AS BLOB)) + length(CAST(reason AS BLOB))
                + ifnull(length(key), 0) + \(KeptMessage.overheadBytes)), 0) + \(PayloadParts.quarantinedBytes)
                FROM _martlet_quarantine
                """)
        size.bytes = sum ?? 0
        return sum ?? 0
    }

    // MARK: Messages that were not kept in full

    /// An entry for a message that was not kept in full, or for the messages of a partition that were only counted.
    package struct PartialEntry {
        package var id: Int64
        package var partition: Int32
        package var offset: Int64
        package var reason: String
        /// True if it counts messages.
        package var isCount: Bool
        /// Size of the whole payload.
        package var byteCount: Int
    }

    package func partialEntries(topic: String) throws -> [PartialEntry] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT id, partition, offset, reason, kept, bytes FROM _martlet_quarantine WHERE topic = ?
                AND kept IN (1, 2)
                """,
            arguments: [topic]
        ).map { row in
            PartialEntry(
                id: row["id"], partition: row["partition"], offset: row["offset"], reason: row["reason"],
                isCount: row["kept"] as Int64 == KeptPart.none.rawValue, byteCount: row["bytes"] ?? 0)
        }
    }

    package func extendReason(_ id: Int64, with text: String) throws {
        try db.execute(
            sql: "UPDATE _martlet_quarantine SET reason = reason || ? WHERE id = ?",
            arguments: [text, id])
    }

    /// Deletes a partition's entries for messages that were not kept in full.
    ///
    /// - Parameter limit: larger messages stay.
    package func removePartialEntries(topic: String, partition: Int32, upTo limit: Int) throws {
        try db.execute(
            sql: """
                DELETE FROM _martlet_quarantine WHERE topic = ?1 AND partition = ?2
                AND (kept = 2 OR kept = 1 AND bytes <= ?3)
                """, arguments: [topic, partition, limit])
        size.bytes = nil
    }

    // MARK: Retrying

    /// Returns the numbers of all dead letters, or only this one if it is there.
    package static func ids(_ db: Database, only id: Int64?) throws -> [Int64] {
        try Int64.fetchAll(
            db, sql: "SELECT id FROM _martlet_quarantine WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
            arguments: [id])
    }

    /// Returns the numbers of the dead letters that one of these keys would decrypt.
    package static func ids(_ db: Database, lacking keys: Set<String>) throws -> [Int64] {
        try Row.fetchAll(
            db, sql: "SELECT id, missing_key FROM _martlet_quarantine WHERE missing_key IS NOT NULL ORDER BY id"
        ).filter { keys.contains($0["missing_key"]) }.map { $0["id"] as Int64 }
    }

    package func find(_ id: Int64) throws -> (source: QuarantinedSource, reason: String)? {
        try Row.fetchOne(
            db, sql: "SELECT \(QuarantinedSource.columns), reason FROM _martlet_quarantine WHERE id = ?",
            arguments: [id]
        ).map { row in
            var source = QuarantinedSource(row)
            source.contents = try PayloadParts.payload(db, of: .quarantined(id), whole: source.payload)
            return (source, row["reason"])
        }
    }

    /// Sets today's reason of a message that still can't be understood.
    package func note(_ error: WireError, for id: Int64) throws {
        try db.execute(
            sql: """
                UPDATE _martlet_quarantine SET reason = ?1, missing_key = ?2,
                proof = CASE WHEN ?3 THEN 2 ELSE proof END
                WHERE id = ?4
                """, arguments: [error.description, error.missingKey?.id, error.isUnproven, id])
    }

    package func remove(_ id: Int64) throws {
        try Self.delete(db, id)
        size.bytes = nil
    }

    // MARK: Transactions that others replace

    /// Passes the messages that are kept in full, name a transaction, and are not refuted: one at a time, since
    /// together they are as large as the dead-letter queue may be.
    package static func forEachTransaction(_ db: Database, _ body: (QuarantinedSource) throws -> Void) throws {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT id, \(QuarantinedSource.columns) FROM _martlet_quarantine
                WHERE partition >= 0 AND proof <> 2 AND kept = 0 AND sequence IS NOT NULL
                """)
        while let row = try rows.next() {
            var source = QuarantinedSource(row)
            source.contents = try PayloadParts.payload(db, of: .quarantined(row["id"]), whole: source.payload)
            try body(source)
        }
    }

    /// Deletes the messages that name this transaction, unless it is refuted that they come from its origin.
    package func remove(_ envelope: WireEnvelope) throws {
        let found = try Int64.fetchAll(
            db, sql: "SELECT id FROM _martlet_quarantine WHERE sequence = ? AND origin = ? AND proof <> 2",
            arguments: [envelope.sequence, Data(envelope.origin.bytes)])
        for id in found { try Self.delete(db, id) }
        size.bytes = nil
    }

    // MARK: Without an engine

    package static func all(_ db: Database) throws -> [QuarantinedMessage] {
        let inParts = try PayloadParts.exist(db) ? PayloadParts.messageBytes : "0"
        return try Row.fetchAll(
            db,
            sql: """
                SELECT id, topic, partition, offset, reason, headers, length(payload) + \(inParts) AS size, since,
                \(try securityColumns(db)) FROM _martlet_quarantine ORDER BY id
                """
        ).map { row in
            QuarantinedMessage(
                id: row["id"], topic: row["topic"], partition: row["partition"], offset: row["offset"],
                reason: row["reason"],
                headers: (row["headers"] as String).split(separator: "\n").map(String.init),
                payloadBytes: row["bytes"] ?? row["size"], keptBytes: row["size"], messageCount: row["messages"],
                digest: (row["digest"] as Data?).map { Array($0) }, since: Date(milliseconds: row["since"]),
                missingKey: row["missing_key"],
                isProven: row["proof"] as Int64 != QuarantinedSource.Proof.failed.rawValue)
        }
    }

    /// Returns the number of messages, including those that were only counted.
    package static func messageCount(_ db: Database) throws -> Int {
        // A store of an older version, until an agent has opened it, has one entry for each message.
        let isCounted = try db.columns(in: "_martlet_quarantine").contains { $0.name == "messages" }
        return try Int.fetchOne(
            db, sql: "SELECT \(isCounted ? "ifnull(sum(messages), 0)" : "count(*)") FROM _martlet_quarantine") ?? 0
    }

    /// Removes a message, and returns it without its payload. Nil if no message has this number.
    package static func take(_ db: Database, _ id: Int64) throws -> QuarantinedSource? {
        guard try db.hasTable("_martlet_quarantine"),
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT partition, headers, \(try securityColumns(db)) FROM _martlet_quarantine WHERE id = ?
                    """, arguments: [id])
        else { return nil }
        try delete(db, id)
        return QuarantinedSource(row)
    }

    /// Returns true if a message that names the transaction is here.
    package static func contains(_ db: Database, _ envelope: WireEnvelope) throws -> Bool {
        if try db.columns(in: "_martlet_quarantine").contains(where: { $0.name == "sequence" }) {
            return try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM _martlet_quarantine WHERE sequence = ? AND origin = ?)",
                arguments: [envelope.sequence, Data(envelope.origin.bytes)]) ?? false
        }
        let rows = try Row.fetchCursor(
            db, sql: "SELECT partition, headers FROM _martlet_quarantine WHERE partition >= 0")
        while let row = try rows.next() {
            guard let other = try? QuarantinedSource(row).envelope() else { continue }
            if other.origin == envelope.origin, other.sequence == envelope.sequence { return true }
        }
        return false
    }

    private static func delete(_ db: Database, _ id: Int64) throws {
        try db.execute(sql: "DELETE FROM _martlet_quarantine WHERE id = ?", arguments: [id])
        try PayloadParts.delete(db, of: .quarantined(id))
    }

    /// A store of an older version doesn't have these columns until an agent has opened it.
    private static func securityColumns(_ db: Database) throws -> String {
        let names = Set(try db.columns(in: "_martlet_quarantine").map(\.name))
        let columns = [
            ("proof", "0"), ("missing_key", "NULL"), ("kept", "0"), ("bytes", "NULL"), ("digest", "NULL"),
            ("messages", "1"),
        ]
        return columns.map { names.contains($0) ? $0 : "\($1) AS \($0)" }.joined(separator: ", ")
    }
}

/// The space that the quarantine takes in the store, cached from the file. Only ``DeadLetters`` sets it.
package final class DeadLetterSize {
    /// In bytes. Nil until it was asked for.
    fileprivate var bytes: Int?

    /// Drops the cache: somebody else may have written.
    func forget() { bytes = nil }
}
