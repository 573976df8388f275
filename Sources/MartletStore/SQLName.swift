extension String {
    /// The name quoted for SQL, whatever is in it.
    package var quotedName: String {
        quoted("\"")
    }

    /// The name of a table of the store, quoted for SQL. Without the schema it would mean a temporary table of the same
    /// name, if the connection has one.
    package var storeTable: String { "main." + quotedName }

    /// The text as an SQL literal.
    package var quotedText: String {
        quoted("'")
    }

    /// Works on Unicode scalars, as SQLite does: a quote before a combining mark is still a quote.
    private func quoted(_ quote: Unicode.Scalar) -> String {
        var result = UnicodeScalarView([quote])
        for scalar in unicodeScalars {
            if scalar == quote { result.append(quote) }
            result.append(scalar)
        }
        result.append(quote)
        return String(result)
    }
}

/// The names of Martlet's own tables and triggers. A table whose name begins with `_martlet_` is never tracked.
package enum InternalName {
    package static let prefix = "_martlet_"
    package static let log = "_martlet_log"
    package static let meta = "_martlet_meta"
    package static let entities = "_martlet_entities"
    package static let columns = "_martlet_columns"
    package static let nodes = "_martlet_nodes"
    package static let cursors = "_martlet_cursors"
    package static let replaced = "_martlet_replaced"
    package static let tombstones = "_martlet_tombstones"
    package static let retired = "_martlet_retired"
    /// Integer keys that already have a stable ID, but whose rows haven't arrived yet.
    package static let reserved = "_martlet_reserved"
    /// Hashes of the values that rows held at one position of the log.
    package static let prints = "_martlet_prints"
    /// Clocks that haven't been flushed to their side tables yet.
    package static let recent = "_martlet_recent"

    /// The side table with the clocks and stable IDs of an entity's rows.
    package static func side(_ entity: Int64) -> String { "_martlet_side_\(entity)" }

    package static func trigger(_ entity: Int64, _ event: String) -> String { "_martlet_\(entity)_\(event)" }
}
