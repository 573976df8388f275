import GRDB
package import MartletReplica
import MartletStore

extension SyncEngine {
    package func wantedOffsets() throws -> WantedOffsets {
        try read { try WantedOffsets.load($0) }
    }

    /// Records that messages were skipped up to these offsets.
    package func want(_ offsets: [Int32: Int64]) throws { try changeWanted { $0.add(offsets) } }

    /// Lowers the offsets to these ends: no snapshot of the topic can cover more.
    package func capWanted(_ ends: [Int32: Int64]) throws { try changeWanted { $0.cap(ends) } }

    private func changeWanted(_ change: (inout WantedOffsets) -> Void) throws {
        try mapErrors {
            try database.write { db in
                let before = try WantedOffsets.load(db)
                var wanted = before
                change(&wanted)
                if wanted != before { try wanted.save(db) }
            }
        }
    }
}
