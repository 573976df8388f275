import Foundation
package import GRDB
package import MartletCore
package import MartletStore
package import MartletWire

/// Pending changes that are kept as messages, whole transactions or single changes: the only code that writes
/// `_martlet_deferred`. ``ParkedItem`` counts its rows together with those of other tables.
package enum DeferredChanges {
    /// Adds a pending change.
    ///
    /// - Parameters:
    ///   - payload: the message.
    ///   - transaction: the message, decoded.
    ///   - release: when it may be applied, in milliseconds since 1970. Nil if it waits for something else.
    package static func add(
        _ db: Database, _ payload: TransactionPayload, _ transaction: WireTransaction, _ reason: ParkReason,
        detail: String, release: Int64?, now: Int64
    ) throws {
        let whole: [UInt8] = if case .whole(let bytes) = payload { bytes } else { [] }
        try db.execute(
            sql: """
                INSERT INTO _martlet_deferred(reason, detail, release, origin, sequence, payload, since)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                reason.rawValue, detail, release, transaction.origin, Int64(transaction.sequence), Data(whole),
                now,
            ])
        guard case .stored(let stored) = payload else { return }
        try PayloadParts.save(db, stored, of: .deferred(db.lastInsertedRowID))
    }

    package static func remove(_ db: Database, _ id: Int64) throws {
        try db.execute(sql: "DELETE FROM _martlet_deferred WHERE id = ?", arguments: [id])
        try PayloadParts.delete(db, of: .deferred(id))
    }

    /// Deletes a transaction that waits for its clock: another one replaces it.
    package static func removeAhead(_ db: Database, _ origin: NodeID, sequence: Int64) throws {
        let found = try Int64.fetchAll(
            db, sql: "SELECT id FROM _martlet_deferred WHERE origin = ? AND sequence = ? AND release IS NOT NULL",
            arguments: [Data(origin.bytes), sequence])
        for id in found { try remove(db, id) }
    }

    // MARK: Retrying

    /// The pending changes to retry.
    package enum Selection {
        /// Those whose clock is no longer ahead at this time, in milliseconds since 1970.
        case released(by: Int64)
        /// Those that wait until their table or column exists here, or is no longer ignored.
        case waitingForSchema
        /// Both.
        case all(at: Int64)

        fileprivate var condition: String {
            let reasons = [ParkReason.unknownSchema, .filtered].map { "'\($0.rawValue)'" }
            let waitsForSchema = "reason IN (\(reasons.joined(separator: ", ")))"
            return switch self {
            case .released(let time): "release IS NOT NULL AND release <= \(time)"
            case .waitingForSchema: waitsForSchema
            case .all(let time): "\(waitsForSchema) OR release <= \(time)"
            }
        }
    }

    /// Passes the selected changes in the order in which they came, one at a time: together they may be far larger than
    /// memory. `body` may remove and add changes; those that it adds are not passed.
    ///
    /// - Returns: how many were found.
    package static func forEach(
        _ db: Database, _ selection: Selection,
        _ body: (_ id: Int64, _ payload: TransactionPayload, _ reason: ParkReason?) throws -> Void
    ) throws -> Int {
        let found = try Int64.fetchAll(
            db, sql: "SELECT id FROM _martlet_deferred WHERE \(selection.condition) ORDER BY id")
        let read = try PreparedStatement(db, "SELECT payload, reason FROM _martlet_deferred WHERE id = ?1")
        for id in found {
            read.bind(1, id)
            guard let (payload, reason) = try read.first({ ($0.blob(0), ParkReason(rawValue: $0.text(1))) }) else {
                continue
            }
            try body(id, PayloadParts.payload(db, of: .deferred(id), whole: payload), reason)
        }
        return found.count
    }

    /// Returns when the next transaction may be applied whose clock is ahead, in milliseconds since 1970.
    package static func nextRelease(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT min(release) FROM _martlet_deferred WHERE release IS NOT NULL"))
    }

    // MARK: Reading

    package static func contains(_ db: Database, _ statement: StatementCache, _ payload: [UInt8]) throws -> Bool {
        let find = try statement(db, "SELECT 1 FROM _martlet_deferred WHERE payload = ?1")
        find.bind(1, blob: payload)
        if try find.first({ _ in true }) ?? false { return true }
        let inParts = try statement(db, "SELECT id FROM _martlet_deferred WHERE length(payload) = 0")
        var found: [Int64] = []
        while try inParts.step() { found.append(inParts.integer(0)) }
        return try found.contains { id in
            try PayloadParts.payload(db, of: .deferred(id), whole: []).equals(.whole(payload))
        }
    }

    /// Returns true if any change waits for something else than a filter.
    package static func hasUnfiltered(_ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM _martlet_deferred WHERE reason <> ?)",
            arguments: [ParkReason.filtered.rawValue]) ?? false
    }

    /// Passes all pending changes as messages, in the order in which they came.
    package static func forEachPayload(_ db: Database, _ body: (TransactionPayload) throws -> Void) throws {
        let read = try PreparedStatement(db, "SELECT id, payload FROM _martlet_deferred ORDER BY id")
        while try read.step() {
            try body(PayloadParts.payload(db, of: .deferred(read.integer(0)), whole: read.blob(1)))
        }
    }

    /// Returns all pending changes that are kept as messages, for people.
    ///
    /// - Parameter includingDeleted: whether to include changes that a filter rejects.
    static func items(_ db: Database, includingDeleted: Bool) throws -> [ParkedItem] {
        try Row.fetchAll(
            db, sql: "SELECT id, reason, detail, origin, sequence, since FROM _martlet_deferred ORDER BY id"
        ).compactMap { row in
            guard let reason = ParkReason(rawValue: row["reason"]), includingDeleted || reason.isWaiting else {
                return nil
            }
            return ParkedItem(
                id: "t\(row["id"] as Int64)", reason: reason, detail: row["detail"],
                origin: NodeID(bytes: row.bytes("origin")),
                sequence: row["sequence"], values: [:], since: Date(milliseconds: row["since"]))
        }
    }
}
