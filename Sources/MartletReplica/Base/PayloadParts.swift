package import GRDB
import MartletCore
import MartletStore
package import MartletWire

/// Payloads that are kept in parts, because they came in parts: of deferred transactions, and of quarantined ones. What
/// they belong to has an empty payload itself. The only code that uses `_martlet_payload_parts`.
package enum PayloadParts {
    /// What a payload belongs to, by its number. Part of the on-disk format.
    package enum Owner {
        case deferred(Int64)
        case quarantined(Int64)

        fileprivate var number: Int64 {
            switch self {
            case .deferred(let id): id
            case .quarantined(let id): -id
            }
        }
    }

    /// The bytes of all quarantined payloads that are in parts.
    package static let quarantinedBytes =
        "(SELECT ifnull(sum(length(bytes)), 0) FROM _martlet_payload_parts WHERE owner < 0)"
    /// The same for the quarantined message of a query.
    package static let messageBytes =
        "(SELECT ifnull(sum(length(bytes)), 0) FROM _martlet_payload_parts WHERE owner = -id)"

    /// A store of an older version doesn't have the table until an agent has opened it.
    package static func exist(_ db: Database) throws -> Bool { try db.hasTable("_martlet_payload_parts") }

    package static func save(_ db: Database, _ payload: any StoredPayload, of owner: Owner) throws {
        let insert = try PreparedStatement(
            db, "INSERT INTO _martlet_payload_parts(owner, part, bytes) VALUES (?1, ?2, ?3)")
        insert.bind(1, owner.number)
        payload.rewind()
        defer { payload.rewind() }
        var part: Int64 = 0
        while let bytes = try payload.next() {
            insert.bind(2, part)
            insert.bind(3, blob: bytes)
            try insert.run()
            part += 1
        }
    }

    package static func delete(_ db: Database, of owner: Owner) throws {
        guard try exist(db) else { return }
        try db.execute(sql: "DELETE FROM _martlet_payload_parts WHERE owner = ?", arguments: [owner.number])
    }

    /// Returns a payload.
    ///
    /// - Parameter whole: the payload that its owner has. Empty if it is in parts.
    package static func payload(_ db: Database, of owner: Owner, whole: [UInt8]) throws -> TransactionPayload {
        guard whole.isEmpty, try exist(db), let parts = try StoredParts(db, owner.number) else { return .whole(whole) }
        return .stored(parts)
    }
}

/// Confined to its connection, like ``StoredChunks``.
private final class StoredParts: StoredPayload {
    let count: Int
    private let partCount: Int64
    // Safe because they are only touched on the connection's queue.
    nonisolated(unsafe) private let read: PreparedStatement
    nonisolated(unsafe) private var part: Int64 = 0

    /// Nil if there are no parts.
    init?(_ db: Database, _ owner: Int64) throws {
        let sum = try PreparedStatement(
            db, "SELECT sum(length(bytes)), count(*) FROM _martlet_payload_parts WHERE owner = ?1")
        sum.bind(1, owner)
        let (bytes, parts) = try sum.first { ($0.integer(0), $0.integer(1)) } ?? (0, 0)
        guard parts > 0 else { return nil }
        count = Int(bytes)
        partCount = parts
        read = try PreparedStatement(db, "SELECT bytes FROM _martlet_payload_parts WHERE owner = ?1 AND part = ?2")
        read.bind(1, owner)
    }

    func rewind() { part = 0 }

    func next() throws -> [UInt8]? {
        guard part < partCount else { return nil }
        read.bind(2, part)
        guard let bytes = try read.first({ $0.blob(0) }) else {
            throw StoreError(
                .corrupt, "Part \(part) of a pending or quarantined transaction is missing.",
                hint: "Restore the file from a backup.")
        }
        part += 1
        return bytes
    }
}
