package import GRDB
import MartletStore

/// Single integers in `_martlet_meta`, by compiled statements: looking up a statement by its text takes as long as
/// running it.
package final class MetaValues {
    private var find: PreparedStatement?
    private var save: PreparedStatement?

    package func callAsFunction(_ db: Database, _ key: String) throws -> Int64? {
        let read = try kept(&find, db, "SELECT value FROM \(InternalName.meta) WHERE key = ?1")
        read.bind(1, text: key)
        return try read.first { $0.optionalInteger(0) } ?? nil
    }

    package func set(_ db: Database, _ key: String, _ value: Int64) throws {
        let save = try kept(
            &save, db,
            "INSERT INTO \(InternalName.meta)(key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2")
        save.bind(1, text: key)
        save.bind(2, value)
        try save.run()
    }
}
