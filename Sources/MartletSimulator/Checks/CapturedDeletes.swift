import GRDB
import MartletStore

/// Checks that the deletes that a program's statements left in the log are of rows that existed. For tables with an
/// integer key; create it before the first statement, and check after the last one, in the same transaction.
struct CapturedDeletes {
    private let last: Int64
    /// The integer keys of the rows that existed, by the number of the table.
    private var rows: [Int64: Set<Int64>] = [:]
    private var names: [Int64: String] = [:]

    init(_ db: Database, _ profiles: [TableProfile]) throws {
        last = try db.lastChange()
        let tracked = try Row.fetchAll(
            db, sql: "SELECT id, name FROM \(InternalName.entities) WHERE state = 'tracked'")
        for row in tracked {
            let (id, name): (Int64, String) = (row["id"], row["name"])
            guard let profile = profiles.first(where: { $0.name == name }), let key = profile.integerKey else {
                continue
            }
            names[id] = name
            rows[id] = try Int64.fetchSet(db, sql: "SELECT \(key.quotedName) FROM \(profile.quoted)")
        }
    }

    /// - Throws: ``SimulationFailure`` if the log contains a delete of a row that didn't exist.
    func check(_ db: Database) throws {
        let logged = try Row.fetchAll(
            db, sql: "SELECT e, r, k FROM \(InternalName.log) WHERE id > ? AND r IS NOT NULL ORDER BY id",
            arguments: [last])
        var rows = rows
        for change in logged {
            let (entity, row, kind): (Int64, Int64, Int64) = (change["e"], change["r"], change["k"])
            guard let name = names[entity] else { continue }
            if kind != ChangeKind.delete.code {
                rows[entity, default: []].insert(row)
            } else if rows[entity]?.contains(row) != true {
                throw SimulationFailure(.history, "row \(row) of \(name) is logged as deleted, but did not exist")
            }
        }
    }
}
