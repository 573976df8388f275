import GRDB
package import MartletMerge
import MartletWire

// Positions by the session in place of its connection, for callers that have a session.

extension OwnCount {
    package init(_ session: ReplicaSession) { self.init(session.connection) }
}

extension PublishProgress {
    package init(_ session: ReplicaSession) { self.init(session.connection) }
}

extension TopicPositions {
    package init(_ session: ReplicaSession, topic: String) { self.init(session.connection, topic: topic) }
}

extension WantedOffsets {
    package static func load(_ session: ReplicaSession) throws -> WantedOffsets { try load(session.connection) }

    /// Records that messages were skipped up to these offsets.
    package static func add(_ offsets: [Int32: Int64], _ session: ReplicaSession) throws {
        try add(offsets, session.connection)
    }

    /// Lowers the offsets to these ends: no snapshot of the topic can cover more.
    package static func cap(_ ends: [Int32: Int64], _ session: ReplicaSession) throws {
        try cap(ends, session.connection)
    }
}

extension SnapshotPlace {
    /// Returns true while this node waits for a snapshot.
    package static func isAwaited(_ session: ReplicaSession) throws -> Bool { try isAwaited(session.connection) }
}

extension VersionVector {
    /// Returns the version vector of the enqueued transactions that are in the store.
    package static func known(_ session: ReplicaSession) throws -> VersionVector {
        try session.read { try VersionVector(WireSnapshotOrigin.all($0, own: session.node, name: "")) }
    }
}
