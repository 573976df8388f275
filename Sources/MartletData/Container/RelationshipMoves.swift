import GRDB
import MartletStore

/// Moves relationships whose storage changes from one version to the next, and checks those that became to-one.
struct RelationshipMoves {
    let alteration: Alteration
    let difference: SchemaDifference

    private typealias Place = StoredSchema.Place
    private var db: Database { alteration.database }

    func run() throws {
        // Both ends of a relationship share one place.
        var done = Set<String>()
        for new in difference.wanted.relationships {
            guard let old = before(new), old.destination == new.destination else { continue }
            let place = renamed(old.place)
            if place == new.place || isReversed(place, new.place) {
                try checkStillOne(old, new)
            } else if done.insert(Self.storage(new.place)).inserted {
                try move(new, from: place)
            }
        }
    }

    private func before(_ new: StoredSchema.Relationship) -> StoredSchema.Relationship? {
        func find(_ property: String) -> StoredSchema.Relationship? {
            difference.found.relationships.first { $0.owner == new.owner && $0.property == property }
        }
        if let same = find(new.property) { return same }
        let link = difference.layout[named: new.owner]?.slots.first { $0.name == new.property }?.link
        return link?.options.formerName.flatMap(find)
    }

    /// The place under its new names.
    private func renamed(_ place: Place) -> Place {
        func name(_ table: String, _ column: String) -> String {
            difference.tables.first { $0.table.name == table }?.renamed.first { $0.from == column }?.to ?? column
        }
        switch place {
        case .column(let table, let column): return .column(table: table, name: name(table, column))
        case .inverse(let table, let column): return .inverse(table: table, name: name(table, column))
        case .join(let table, let own, let other):
            guard let renamed = difference.renamedJoins.first(where: { $0.from.name == table }) else { return place }
            let (from, to) = renamed
            let isTurned = from.ownTable != to.ownTable
            func column(_ name: String) -> String { (name == from.own) != isTurned ? to.own : to.other }
            return .join(table: to.name, own: column(own), other: column(other))
        }
    }

    private func isReversed(_ a: Place, _ b: Place) -> Bool {
        guard case .join(let x, _, _) = a, case .join(let y, _, _) = b else { return false }
        return x == y
    }

    private static func storage(_ place: Place) -> String {
        switch place {
        case .column(let table, let name), .inverse(let table, let name): "\(table).\(name)"
        case .join(let table, _, _): table
        }
    }

    /// An SQL query for the pairs of a relationship, as `own` and `other`.
    private static func pairs(_ place: Place) -> String {
        let key = TableLayout.key
        switch place {
        case .column(let table, let name):
            return """
                SELECT \(key) AS own, \(name.quotedName) AS other FROM \(table.quotedName)
                WHERE \(name.quotedName) IS NOT NULL
                """
        case .inverse(let table, let name):
            return """
                SELECT \(name.quotedName) AS own, \(key) AS other FROM \(table.quotedName)
                WHERE \(name.quotedName) IS NOT NULL
                """
        case .join(let table, let own, let other):
            return "SELECT \(own.quotedName) AS own, \(other.quotedName) AS other FROM \(table.quotedName)"
        }
    }

    /// Throws if a row of one end would have to be related to several of the other.
    private func checkOne(_ relationship: StoredSchema.Relationship, _ end: String, in place: Place) throws {
        let count =
            try Int.fetchOne(
                db,
                sql: "SELECT count(*) FROM (SELECT 1 FROM (\(Self.pairs(place))) GROUP BY \(end) HAVING count(*) > 1)")
            ?? 0
        guard count == 0 else {
            throw SwiftDataError.missingMigration.because(
                """
                \(relationship.owner).\(relationship.property) is stored in another way now, in which \(count) models \
                of \(end == "own" ? relationship.table : relationship.destination) would have to belong to several at \
                once. Reduce them to one in willMigrate of a custom stage.
                """
            )
        }
    }

    private func checkStillOne(_ old: StoredSchema.Relationship, _ new: StoredSchema.Relationship) throws {
        guard old.isToMany, !new.isToMany else { return }
        try checkOne(new, "own", in: new.place)
    }

    private func move(_ new: StoredSchema.Relationship, from old: Place) throws {
        if !new.isToMany { try checkOne(new, "own", in: old) }
        let pairs = Self.pairs(old)
        func set(_ table: String, _ column: String, row: String, to value: String) throws {
            try alteration.withoutCapture {
                // A column that comes back may still contain its earlier values.
                try db.execute(
                    sql: """
                        UPDATE \(table.quotedName) SET \(column.quotedName) = NULL
                        WHERE \(column.quotedName) IS NOT NULL
                        """)
                try db.execute(
                    sql: """
                        UPDATE \(table.quotedName) SET \(column.quotedName) = p.\(value) FROM (\(pairs)) AS p
                        WHERE \(table.quotedName).\(TableLayout.key) = p.\(row)
                        """)
                return [table]
            }
        }
        switch new.place {
        case .column(let table, let name):
            try set(table, name, row: "own", to: "other")
        case .inverse(let table, let name):
            try checkOne(new, "other", in: old)
            try set(table, name, row: "other", to: "own")
        case .join(let table, let own, let other):
            // These are rows, and a row gets a stable ID for other nodes only through the history.
            try db.execute(
                sql: """
                    INSERT OR IGNORE INTO \(table.quotedName)(\(own.quotedName), \(other.quotedName))
                    SELECT own, other FROM (\(pairs))
                    """)
        }
    }
}
