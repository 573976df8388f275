import Foundation
package import GRDB
package import MartletCore

/// How far a node has ingested a partition of a source topic: the only code that reads and writes `_martlet_ingest`.
///
/// It is stored in the SQLite transaction that merges the records before it.
package struct SourcePlace: Equatable, Sendable {
    package var topic: String
    package var partition: Int32
    /// The offset of the next record.
    package var next: Int64 = 0
    /// The latest time that a record was stamped with.
    package var last = HybridTime.zero
    /// The newest position in the source's log that a record had, encoded.
    package var position: String?
    /// The last record that was read, to tell whether the topic is still the same one. Nil if it could not be read.
    package var seen: Seen?
    /// The key of the last record, if that was a delete: a null record of the same key follows.
    package var deleted: [UInt8]?
    /// The reason why the next record can't be merged, and since when, in milliseconds since 1970. Nil while nothing
    /// holds the partition up.
    package var problem: Problem?

    package struct Problem: Equatable, Sendable {
        package var reason: String
        package var since: Int64
        /// The offset of the last record that can't be merged: all those of an unreadable batch go together.
        package var last: Int64

        package init(reason: String, since: Int64, last: Int64) {
            self.reason = reason
            self.since = since
            self.last = last
        }
    }

    package struct Seen: Equatable, Sendable {
        package var offset: Int64
        package var digest: [UInt8]

        package init(offset: Int64, digest: [UInt8]) {
            self.offset = offset
            self.digest = digest
        }
    }

    package init(topic: String, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    private static let columns = "topic, partition, next, hlc, position, deleted, problem, since, seen, digest, last"

    private init(_ row: Row) {
        topic = row["topic"]
        partition = row["partition"]
        next = row["next"]
        last = HybridTime(stored: row["hlc"])
        position = row["position"]
        deleted = (row["deleted"] as Data?).map { Array($0) }
        if let offset = row["seen"] as Int64?, let digest = row["digest"] as Data? {
            seen = Seen(offset: offset, digest: Array(digest))
        }
        if let reason = row["problem"] as String? {
            problem = Problem(reason: reason, since: row["since"] ?? 0, last: row["last"] ?? next)
        }
    }

    /// Returns the place of a partition; the beginning if none is stored.
    package static func load(_ db: Database, _ topic: String, _ partition: Int32) throws -> SourcePlace {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT * FROM _martlet_ingest WHERE topic = ? AND partition = ?"),
            arguments: [topic, partition])
        return row.map(SourcePlace.init) ?? SourcePlace(topic: topic, partition: partition)
    }

    /// Returns all places, by topic and partition.
    package static func all(_ db: Database) throws -> [SourcePlace] {
        try Row.fetchAll(db, sql: "SELECT * FROM _martlet_ingest ORDER BY topic, partition")
            .map(SourcePlace.init)
    }

    package func save(_ db: Database) throws {
        try db.cachedStatement(
            sql: "INSERT OR REPLACE INTO _martlet_ingest(\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ).execute(
            arguments: [
                topic, partition, next, last.stored, position, deleted.map { Data($0) }, problem?.reason,
                problem?.since, seen?.offset, seen.map { Data($0.digest) }, problem?.last,
            ])
    }

    /// SQL that creates the table, as it was in format 16.
    static let table = """
        CREATE TABLE IF NOT EXISTS _martlet_ingest(
          topic TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL, hlc INTEGER NOT NULL, position TEXT,
          deleted BLOB, problem TEXT, since INTEGER, seen INTEGER, digest BLOB, PRIMARY KEY(topic, partition))
          WITHOUT ROWID
        """
}
