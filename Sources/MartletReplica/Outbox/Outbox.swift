import Foundation
package import GRDB
package import MartletCore
package import MartletStore
package import MartletWire

/// This node's transactions on their way to the topic: the only code that writes the outbox, and the only place that
/// allots sequence numbers.
///
/// A value for one transaction of the engine's connection. ``close()`` stores the last sequence number.
package struct Outbox {
    private let db: Database
    private let save: PreparedStatement
    private let notes: CommitNotes
    /// This node's ID and name, as messages have them.
    private let origin: Data
    private let nodeName: String
    /// The sequence number of the next transaction.
    package private(set) var next: Int64
    private let first: Int64

    /// - Parameters:
    ///   - node: this node.
    ///   - nodeName: its name for people.
    package init(
        _ db: Database, _ statement: StatementCache, _ meta: MetaValues, _ notes: CommitNotes, node: NodeID,
        nodeName: String
    ) throws {
        self.db = db
        save = try statement(db, "INSERT INTO _martlet_outbox(sequence, txn, payload) VALUES (?1, ?2, ?3)")
        self.notes = notes
        origin = Data(node.bytes)
        self.nodeName = nodeName
        first = try meta(db, SyncMeta.nextSequence) ?? 1
        next = first
    }

    /// Adds a message under the sequence ``next``, which its header must have.
    ///
    /// - Parameters:
    ///   - payload: empty if the message is stored in parts.
    ///   - transaction: the transaction of the log that it belongs to. With that one, it is deleted.
    package mutating func append(_ payload: [UInt8], of transaction: Int64) throws {
        save.bind(1, next)
        save.bind(2, transaction)
        save.bind(3, blob: payload)
        try save.run()
        next += 1
    }

    /// Adds a message of changes.
    ///
    /// - Parameter header: the transaction without its changes, origin, sequence and clock. If there are no changes, it
    ///   needs a clock.
    /// - Returns: the message.
    @discardableResult
    package mutating func append(
        _ changes: OutgoingChanges, header: WireTransaction, of transaction: Int64, as encoding: WireEncoding
    ) throws -> [UInt8] {
        let payload = try changes.encoded(in: addressed(header), as: encoding)
        let replacing = next
        try append(payload, of: transaction)
        for sequence in header.restates { try Self.note(db, sequence: Int64(sequence), replacedBy: replacing) }
        return payload
    }

    /// Returns the header with this node as its origin, and the sequence ``next``.
    package func addressed(_ header: consuming WireTransaction) -> WireTransaction {
        var wire = header
        wire.format = WireFormat.version
        wire.origin = origin
        wire.originName = nodeName
        wire.sequence = UInt64(next)
        return wire
    }

    /// Stores the last sequence number, with everything else that the engine has noted: the rest of the SQLite
    /// transaction may read it.
    package func close() throws {
        if next > first { notes.add(SyncMeta.nextSequence, next) }
        try notes.write(db)
    }

    private static func note(_ db: Database, sequence: Int64, replacedBy newer: Int64) throws {
        try db.execute(
            sql: "UPDATE _martlet_outbox SET restated = ? WHERE sequence = ?", arguments: [newer, sequence])
    }

    // MARK: Reading

    /// Returns the last sequence number that was allotted; 0 if none was.
    package static func lastSequence(_ db: Database) throws -> Int64 {
        (try Meta.integer(db, SyncMeta.nextSequence) ?? 1) - 1
    }

    /// Returns the oldest sequence that the outbox still has. Nil if it is empty.
    package static func firstSequence(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT min(sequence) FROM _martlet_outbox")
    }

    /// Returns the transaction of the log to which the first message after a sequence belongs. Nil if there is none.
    package static func firstTransaction(_ db: Database, after sequence: Int64) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT txn FROM _martlet_outbox WHERE sequence > ? ORDER BY sequence LIMIT 1"),
            arguments: [sequence])
    }

    /// Returns the sequences of these transactions of the log, which ascend, as far as the outbox has them: those of
    /// their first messages.
    package static func sequences(_ db: Database, of transactions: [Int64]) throws -> [Int64: Int64] {
        guard let first = transactions.first, let last = transactions.last else { return [:] }
        let read = try PreparedStatement(
            db, "SELECT sequence, txn FROM _martlet_outbox WHERE sequence >= ?1 ORDER BY sequence")
        read.bind(1, try firstSequence(db, from: first))
        let wanted = Set(transactions)
        var sequences: [Int64: Int64] = [:]
        while try read.step() {
            let transaction = read.integer(1)
            if transaction > last { break }
            if wanted.contains(transaction), sequences[transaction] == nil { sequences[transaction] = read.integer(0) }
        }
        return sequences
    }

    /// Returns the sequence of the first message of this transaction or a later one, by bisection: later messages
    /// belong to later transactions, and there is no index by transaction.
    private static func firstSequence(_ db: Database, from transaction: Int64) throws -> Int64 {
        var low = try firstSequence(db) ?? 1
        var high = try lastSequence(db) + 1
        let find = try PreparedStatement(
            db, "SELECT sequence, txn FROM _martlet_outbox WHERE sequence >= ?1 ORDER BY sequence LIMIT 1")
        while low < high {
            let middle = low + (high - low) / 2
            find.bind(1, middle)
            let isEarlier = try find.first { $0.integer(1) < transaction } ?? false
            if isEarlier { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the whole message of a transaction. Nil if it has left the outbox.
    package static func payload(_ db: Database, _ sequence: Int64) throws -> [UInt8]? {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT payload FROM _martlet_outbox WHERE sequence = ?"), arguments: [sequence])
        guard let stored = row?.bytes("payload") else { return nil }
        return try OutboxPayload.whole(db, sequence: sequence, stored: stored)
    }

    /// A transaction in the outbox.
    package struct Entry {
        package var sequence: Int64
        /// The transaction of the log that it belongs to.
        package var transaction: Int64
        /// True if a later transaction replaces it.
        package var isReplaced: Bool
        /// As it is stored: empty if the message is in parts.
        fileprivate var stored: [UInt8]

        /// Returns enough of the transaction to know when it was made and by whom; its changes may be incomplete. Nil
        /// if it can't be decoded.
        package func beginning(_ db: Database) throws -> WireTransaction? {
            try OutboxPayload.beginning(db, sequence: sequence, stored: stored)
        }

        /// Returns the whole message.
        package func payload(_ db: Database) throws -> [UInt8] {
            try OutboxPayload.whole(db, sequence: sequence, stored: stored)
        }
    }

    /// Passes the transactions of a range in ascending order, one at a time, until `body` returns false.
    package static func forEach(
        _ db: Database, in range: ClosedRange<Int64> = 1...Int64.max, _ body: (Entry) throws -> Bool
    ) throws {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT sequence, txn, payload, restated FROM _martlet_outbox WHERE sequence BETWEEN ? AND ?
                ORDER BY sequence
                """, arguments: [range.lowerBound, range.upperBound])
        while let row = try rows.next() {
            let entry = Entry(
                sequence: row["sequence"], transaction: row["txn"], isReplaced: row["restated"] as Int64? != nil,
                stored: row.bytes("payload"))
            guard try body(entry) else { return }
        }
    }

    // MARK: A new node ID

    /// Moves what the topic lacks to a new node ID, with sequences from 1 on.
    ///
    /// - Parameters:
    ///   - confirmed: the last sequence that the topic has.
    ///   - rewrite: returns a message with its new sequence. It is given the new sequence of each transaction, by its
    ///     former one.
    /// - Returns: how many transactions were moved.
    package static func renumber(
        _ db: Database, after confirmed: Int64,
        _ rewrite: (_ payload: [UInt8], _ sequence: Int64, _ numbers: [UInt64: UInt64]) throws -> [UInt8]
    ) throws -> Int {
        try db.execute(
            sql: "DELETE FROM _martlet_outbox WHERE sequence <= ? AND \(UnretainedRanges.isKept)",
            arguments: [confirmed])
        let sequences = try Int64.fetchAll(db, sql: "SELECT sequence FROM _martlet_outbox ORDER BY sequence")
        // Ascending: a transaction whose sequence is taken over has been moved already.
        let numbers = Dictionary(uniqueKeysWithValues: sequences.enumerated().map { (UInt64($1), UInt64($0 + 1)) })
        for (index, old) in sequences.enumerated() {
            guard let payload = try payload(db, old) else { continue }
            let sequence = Int64(index + 1)
            try db.execute(
                sql: "UPDATE _martlet_outbox SET sequence = ?, payload = ? WHERE sequence = ?",
                arguments: [sequence, Data(try rewrite(payload, sequence, numbers)), old])
        }
        try db.execute(sql: "DELETE FROM _martlet_outbox_parts")
        try UnretainedRanges.forget(db)
        try Meta.set(db, SyncMeta.nextSequence, Int64(sequences.count) + 1)
        return sequences.count
    }
}
