package import GRDB
import MartletStore

/// The partitions in which a node's transactions were seen: one, or more if partitions were added to the topic.
package enum OwnPartitions {
    package static func load(_ db: Database) throws -> Set<Int32> {
        Set(try Meta.text(db, SyncMeta.ownPartitions)?.split(separator: ",").compactMap { Int32($0) } ?? [])
    }

    package static func save(_ db: Database, _ partitions: Set<Int32>) throws {
        try Meta.set(db, SyncMeta.ownPartitions, partitions.sorted().map(String.init).joined(separator: ","))
    }
}
