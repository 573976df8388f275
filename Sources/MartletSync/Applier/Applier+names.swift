import GRDB
import MartletStore

/// Rows that are not called what their columns say: they were inserted where, or when, something else named them. What
/// a row is called never depends on its columns then.
extension Applier {
    /// Begins to look up names where a row that its columns named gets other ones, and keeps its name.
    func noteName(_ change: RemoteChange, _ won: [RemoteColumn]) throws {
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

extension EntityTable {
    /// True where all rows are named by columns until one comes that isn't, and there is a way to find that one again.
    var mayBeNamedOtherwise: Bool { !recordsNames && entity.localKey != nil }

    func isIdentity(_ slot: Int) -> Bool { identityColumns.contains { $0.slot == slot } }
}
