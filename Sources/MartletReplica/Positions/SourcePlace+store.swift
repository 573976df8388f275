public import Foundation
import GRDB
import MartletCore
public import MartletStore

/// How far a store has ingested a partition of a topic.
public struct IngestPlace: Sendable, Equatable {
    public var topic: String
    public var partition: Int32
    /// The offset of the next record.
    public var next: Int64
    /// The reason why that record holds up the partition. Nil if it does not.
    public var problem: String?
    /// Since when it does.
    public var since: Date?

    init(_ place: SourcePlace) {
        topic = place.topic
        partition = place.partition
        next = place.next
        problem = place.problem?.reason
        since = place.problem.map { Date(milliseconds: $0.since) }
    }
}

extension Store {
    /// Returns how far each partition was ingested, by topic and partition. Empty if this store never ingested.
    public func ingestPlaces() throws -> [IngestPlace] {
        try readSync { db in
            // A store of an earlier version lacks the table until it is opened for syncing.
            guard try db.hasTable("_martlet_ingest") else { return [] }
            return try SourcePlace.all(db).map(IngestPlace.init)
        } ?? []
    }

    /// Leaves out a record that holds up its partition, or all records of a batch that can't be read: what they changed
    /// stays as it is. An agent may be running.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if no record at this offset holds up the
    ///   partition.
    public func skipIngested(topic: String, partition: Int32, offset: Int64) throws {
        try writeOwnTables { db in
            guard try db.hasTable("_martlet_ingest") else { throw Self.notHeld(topic, partition, offset) }
            let sql = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('_martlet_ingest') WHERE name = 'last')"
            guard try Bool.fetchOne(db, sql: sql) == true else {
                throw StoreError(
                    .invalidArgument, "The store has an older format.",
                    hint: "Start its agent once with this version of Martlet.")
            }
            var place = try SourcePlace.load(db, topic, partition)
            guard let problem = place.problem, place.next == offset else {
                throw Self.notHeld(topic, partition, offset)
            }
            place.next = problem.last + 1
            place.problem = nil
            try place.save(db)
        }
    }

    private static func notHeld(_ topic: String, _ partition: Int32, _ offset: Int64) -> StoreError {
        StoreError(
            .invalidArgument, "No record at \(topic)/\(partition)/\(offset) holds up its partition.",
            hint: "List the partitions with `martlet ingest STORE`.")
    }
}
