import GRDB
import MartletStore
package import MartletWire

/// Rows whose stable ID differs from what their columns say, because another rule applied where, or when, they were
/// inserted. The ID of such a row never depends on its columns.
extension Applier {
    /// Begins to look up stable IDs, if a row that was identified by its columns gets other values there and keeps its
    /// ID.
    package func noteName(_ change: RemoteChange, _ won: [RemoteColumn]) throws {
        let table = change.table
        guard table.mayBeNamedOtherwise, won.contains(where: { table.isIdentity($0.slot) }) else { return }
        let parts = try change.identity.values()
        let columns = table.identityColumns
        for column in won {
            guard let place = columns.firstIndex(where: { $0.slot == column.slot }) else { continue }
            if parts.count != columns.count || parts[place] != column.value { return try table.beginRecording(db) }
        }
    }
}
