extension String {
    /// The name quoted for SQL, whatever is in it.
    package var quotedName: String {
        quoted("\"")
    }

    /// The text as an SQL literal.
    package var quotedText: String {
        quoted("'")
    }

    /// By Unicode scalars, as SQLite reads it: a quote before a combining mark is a quote.
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

/// Names of what Martlet keeps in the store. A table whose name begins with `_martlet_` is never tracked.
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
    /// Integer keys for which a stable ID was given out, and whose rows have not come yet.
    package static let reserved = "_martlet_reserved"
    /// What rows held at one place of the log.
    package static let prints = "_martlet_prints"
    /// Clocks that are not in their side table yet.
    package static let recent = "_martlet_recent"

    /// Clocks and stable IDs of the rows of an entity.
    package static func side(_ entity: Int64) -> String { "_martlet_side_\(entity)" }

    package static func trigger(_ entity: Int64, _ event: String) -> String { "_martlet_\(entity)_\(event)" }
}
