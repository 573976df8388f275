package import Foundation
package import MartletReplica
package import MartletStore

/// The place of a store when an agent last ran on it, as the agent recorded it.
package struct RecordedPlace {
    private let session: ReplicaSession

    package init(_ session: ReplicaSession) {
        self.session = session
    }

    /// Nil before the first run.
    package func text() throws -> String? {
        try session.read { try Meta.text($0, SyncMeta.place) }
    }

    package func record(_ place: String) throws {
        try session.writeMeta { db in
            guard try Meta.text(db, SyncMeta.place) != place else { return }
            try Meta.set(db, SyncMeta.place, place)
        }
    }

    /// Returns the store's identifier in tokens.
    package func storeIdentifier() throws -> UUID? {
        try session.read { try Meta.text($0, MetaKey.storeID) }.flatMap(UUID.init(uuidString:))
    }
}

extension Store {
    /// Returns the place of the store when an agent last ran on it; see ``RecordedPlace``.
    package func recordedPlace() throws -> String? { try readSync { try Meta.text($0, SyncMeta.place) } ?? nil }
}
