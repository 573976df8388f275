package import Foundation
import GRDB
import MartletReplica
package import MartletStore

extension SyncEngine {
    /// Returns the store's identifier in tokens.
    package func storeIdentifier() throws -> UUID? {
        try read { try Meta.text($0, MetaKey.storeID) }.flatMap(
            UUID.init(uuidString:))
    }

    /// Returns the place of the store when an agent last ran on it, as the agent recorded it. Nil before the first run.
    package func recordedPlace() throws -> String? {
        try read { try Meta.text($0, SyncMeta.place) }
    }

    package func recordPlace(_ place: String) throws {
        try mapErrors {
            try database.write { db in
                guard try Meta.text(db, SyncMeta.place) != place else { return }
                try Meta.set(db, SyncMeta.place, place)
            }
        }
    }

    /// Returns whether there are local changes without clocks.
    package func hasUnstamped() throws -> Bool {
        try read(UnstampedChanges.exist)
    }
}

extension Store {
    /// Returns the place of the store when an agent last ran on it; see ``SyncEngine/recordedPlace()``.
    package func recordedPlace() throws -> String? { try readSync { try Meta.text($0, SyncMeta.place) } ?? nil }
}
