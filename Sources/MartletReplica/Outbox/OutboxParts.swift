package import GRDB
package import MartletCore
package import MartletStore
package import MartletWire

/// Stores the messages of transactions that took several commits to enqueue, in consecutive parts. Their entry in the
/// outbox, which is added with the last part, has an empty payload.
///
/// Confined to the engine's connection.
package struct OutboxParts {
    private let db: Database
    private let statement: StatementCache
    private let notes: CommitNotes
    private let partial: PartialOutbox

    package init(_ db: Database, _ statement: StatementCache, _ notes: CommitNotes, _ partial: PartialOutbox) {
        self.db = db
        self.statement = statement
        self.notes = notes
        self.partial = partial
    }

    /// Adds changes that follow those that were added before.
    ///
    /// - Parameters:
    ///   - header: the transaction without its changes and its clock.
    ///   - encoding: of a message that begins here. Later parts are encoded like the first one.
    package func add(_ changes: OutgoingChanges, of header: WireTransaction, as encoding: WireEncoding) throws {
        guard let last = changes.last, !changes.isEmpty else { return }
        let number = partial.open?.parts ?? 0
        let encoding = partial.open?.encoding ?? encoding
        try save(
            changes.encodedRun(of: number == 0 ? header : nil, as: encoding), number, Int64(header.sequence))
        let open = PartialTransaction(last: last, parts: number + 1, encoding: encoding)
        partial.open = open
        notes.add(SyncMeta.partialReading, open.last.stored)
        notes.add(SyncMeta.partialParts, Int64(open.parts))
    }

    /// Adds the last changes, and the end of the message.
    package func end(_ changes: OutgoingChanges, of header: WireTransaction, as encoding: WireEncoding) throws {
        try add(changes, of: header, as: encoding)
        let closing = WireFormat.closing(partial.open?.encoding ?? encoding)
        if !closing.isEmpty { try save(closing, partial.open?.parts ?? 0, Int64(header.sequence)) }
        partial.open = nil
        try db.execute(
            sql: "DELETE FROM \(InternalName.meta) WHERE key IN (?, ?)",
            arguments: [SyncMeta.partialReading, SyncMeta.partialParts])
        // Notes of this slice that are not written yet would bring them back.
        notes.remove([SyncMeta.partialReading, SyncMeta.partialParts])
    }

    private func save(_ bytes: [UInt8], _ part: Int, _ sequence: Int64) throws {
        let save = try statement(
            db, "INSERT INTO _martlet_outbox_parts(sequence, part, bytes) VALUES (?1, ?2, ?3)")
        save.bind(1, sequence)
        save.bind(2, Int64(part))
        save.bind(3, blob: bytes)
        try save.run()
    }
}

/// The encoded part of the transaction that is enqueued in part. Only ``OutboxParts`` changes it.
package final class PartialOutbox {
    package fileprivate(set) var open: PartialTransaction?

    init(_ db: Database) throws {
        open = try PartialTransaction(db)
    }
}

/// A transaction that some commits have enqueued in part.
package struct PartialTransaction {
    /// The time of the last encoded change.
    package var last: HybridTime
    /// The number of parts.
    package var parts: Int
    /// The encoding of these parts.
    package var encoding: WireEncoding

    package init(last: HybridTime, parts: Int, encoding: WireEncoding) {
        self.last = last
        self.parts = parts
        self.encoding = encoding
    }

    /// Nil if no transaction is enqueued in part, or if nothing of it is to be sent so far.
    package init?(_ db: Database) throws {
        guard let parts = try Meta.integer(db, SyncMeta.partialParts),
            let last = try Meta.integer(db, SyncMeta.partialReading)
        else { return nil }
        let payload = try OutboxPayload(db, sequence: Outbox.lastSequence(db) + 1)
        self.init(last: HybridTime(stored: last), parts: Int(parts), encoding: payload.encoding)
    }
}

/// A transaction that is stamped only in part.
package enum OpenTransaction {
    package static func exists(_ db: Database) throws -> Bool {
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        return try Bool.fetchOne(
            db, sql: "SELECT e <> 0 FROM \(InternalName.log) WHERE id = ?", arguments: [stamped]) ?? false
    }
}

/// The payload of an outbox entry. A large one is not read as a whole.
///
/// Confined to its connection.
package struct OutboxPayload {
    /// The start of each part, and the end of the last one.
    private let starts: [Int]
    private let sequence: Int64
    /// The part that was read last.
    private var current: (part: Int, bytes: [UInt8])?

    package var count: Int { starts.last ?? 0 }
    /// How it is encoded, which need not be the present setting.
    package private(set) var encoding = WireEncoding.protobuf

    /// A payload that the outbox has as a whole.
    package init(sequence: Int64, stored: [UInt8]) {
        self.sequence = sequence
        encoding = WireEncoding(of: stored)
        starts = [0, stored.count]
        current = (0, stored)
    }

    /// A payload in parts.
    package init(_ db: Database, sequence: Int64) throws {
        self.sequence = sequence
        let lengths = try Int.fetchAll(
            db, sql: "SELECT length(bytes) FROM _martlet_outbox_parts WHERE sequence = ? ORDER BY part",
            arguments: [sequence])
        starts = lengths.reduce(into: [0]) { $0.append(($0.last ?? 0) + $1) }
        if !lengths.isEmpty { encoding = WireEncoding(of: try read(0, db)) }
    }

    /// The whole payload, if it need not be read.
    package var stored: [UInt8]? { starts.count == 2 ? current?.bytes : nil }

    /// Returns a range of the payload. Parts are read in order, one at a time.
    package mutating func bytes(_ range: Range<Int>, _ db: Database) throws -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var part = (starts.firstIndex { $0 > range.lowerBound } ?? starts.count) - 1
        while bytes.count < range.count, part + 1 < starts.count {
            let whole = try read(part, db)
            let from = range.lowerBound + bytes.count - starts[part]
            bytes += whole[from..<min(whole.count, range.upperBound - starts[part])]
            part += 1
        }
        return bytes
    }

    private mutating func read(_ part: Int, _ db: Database) throws -> [UInt8] {
        if let current, current.part == part { return current.bytes }
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT bytes FROM _martlet_outbox_parts WHERE sequence = ? AND part = ?"),
            arguments: [sequence, part])
        guard let bytes = row?.bytes("bytes"), bytes.count == starts[part + 1] - starts[part] else {
            throw StoreError(
                .corrupt, "Part \(part) of the message of transaction \(sequence) is missing.",
                hint: "Restore the file from a backup.")
        }
        current = (part, bytes)
        return bytes
    }

    /// Returns the whole payload.
    package static func whole(_ db: Database, sequence: Int64, stored: [UInt8]) throws -> [UInt8] {
        guard stored.isEmpty else { return stored }
        var payload = try OutboxPayload(db, sequence: sequence)
        return try payload.bytes(0..<payload.count, db)
    }

    /// Returns enough of the transaction to know when it was made and by whom; its changes may be incomplete.
    package static func beginning(_ db: Database, sequence: Int64, stored: [UInt8]) throws -> WireTransaction? {
        guard stored.isEmpty else { return try? WireFormat.decode(stored) }
        var payload = try OutboxPayload(db, sequence: sequence)
        guard payload.count > 0 else { return nil }
        let first = try payload.read(0, db)
        // Parts of the binary format are themselves messages.
        return try? WireFormat.decode(first + WireFormat.closing(WireEncoding(of: first)))
    }
}
