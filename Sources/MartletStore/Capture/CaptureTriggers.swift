/// The SQL of the triggers that record every change of a table in the log, whichever program makes it.
///
/// Nothing but SQL that each SQLite since 3.37 understands: a trigger runs in the connection of whoever writes, which
/// knows no function of ours.
package struct CaptureTriggers {
    package let entity: Entity

    package init(_ entity: Entity) { self.entity = entity }

    /// Milliseconds since 1970. The rounding makes SQLite's julian day exact.
    package static let now = "CAST(julianday('now') * 86400000.0 + 0.5 AS INTEGER) - 210866760000000"

    /// The statements that make all triggers of the table.
    package var statements: [String] {
        var statements = [insert, update, delete]
        if watchesInserts { statements.append(beforeInsert) }
        if watchesUpdates { statements.append(beforeUpdate) }
        return statements
    }

    /// The names of all triggers that this version or an earlier one may have made.
    package static func names(_ id: Int64) -> [String] {
        ["insert", "update", "delete", "before_insert", "before_update"].map { InternalName.trigger(id, $0) }
    }

    private var table: String { entity.name.quotedName }

    /// The integer key, or NULL where the rows have none that lasts.
    private func row(_ version: String) -> String {
        entity.integerKey.map { "\(version).\($0.quotedName)" } ?? "NULL"
    }

    private func name(_ event: String) -> String { InternalName.trigger(entity.id, event).quotedName }

    private var slots: String { entity.columns.map { ", c\($0.slot)" }.joined() }

    private func values(_ version: String) -> String {
        entity.columns.map { ", \(version).\($0.name.quotedName)" }.joined()
    }

    private var insert: String {
        """
        CREATE TRIGGER \(name("insert")) AFTER INSERT ON \(table) BEGIN
        \(logReplaced(isUpdate: false))INSERT INTO \(InternalName.log)(e, r, k, t\(slots))
        VALUES (\(entity.id), \(row("NEW")), \(ChangeKind.insert.code), \(Self.now)\(values("NEW")));
        END
        """
    }

    private func differs(_ column: EntityColumn) -> String {
        let name = column.name.quotedName
        let comparison = "OLD.\(name) IS NOT NEW.\(name) COLLATE BINARY"
        // Without affinity 1 and 1.0 are equal, and yet not the same.
        guard column.hasNoAffinity else { return comparison }
        return "(\(comparison) OR typeof(OLD.\(name)) <> typeof(NEW.\(name)))"
    }

    /// True for an update that moves the row to another key or gives it another identity.
    private var moves: String {
        var terms = entity.identityColumns.map(differs)
        if let key = entity.integerKey { terms.append("OLD.\(key.quotedName) <> NEW.\(key.quotedName)") }
        return terms.isEmpty ? "0" : "(" + terms.joined(separator: " OR ") + ")"
    }

    private var update: String {
        let columns = entity.columns
        let identity = Set(entity.identityColumns.map(\.name))
        var changed = columns.map(differs)
        if let key = entity.localKey { changed.append("OLD.\(key.quotedName) <> NEW.\(key.quotedName)") }
        let mask = ChangeMask.expression(columns.map { (slot: $0.slot, condition: differs($0)) })
        let movesByIdentity = entity.identityColumns.map(differs).joined(separator: " OR ")
        let new = columns.map { column in
            let name = "NEW.\(column.name.quotedName)"
            if identity.contains(column.name) { return ", " + name }
            let whole = movesByIdentity.isEmpty ? "" : " OR \(movesByIdentity)"
            return ", CASE WHEN \(differs(column))\(whole) THEN \(name) END"
        }.joined()
        let old = columns.map { column in
            let name = "OLD.\(column.name.quotedName)"
            if identity.contains(column.name) { return ", " + name }
            guard entity.keepsOldValues else { return ", NULL" }
            return ", CASE WHEN \(differs(column)) THEN \(name) END"
        }.joined()
        return """
            CREATE TRIGGER \(name("update")) AFTER UPDATE ON \(table)
            WHEN \(changed.joined(separator: " OR ")) BEGIN
            \(logReplaced(isUpdate: true))INSERT INTO \(InternalName.log)(e, r, k, t\(slots))
            SELECT \(entity.id), \(row("OLD")), \(ChangeKind.Mark.before), \(Self.now)\(old)\
            \(entity.keepsOldValues ? "" : " WHERE \(moves)");
            INSERT INTO \(InternalName.log)(e, r, k, m, t\(slots))
            VALUES (\(entity.id), \(row("NEW")), \(ChangeKind.update.code), \(mask), \(Self.now)\(new));
            END
            """
    }

    private var preserved: [EntityColumn] {
        entity.keepsOldValues ? entity.columns : entity.identityColumns
    }

    private var delete: String {
        let forget = !watchesInserts && !watchesUpdates ? "" : "DELETE FROM \(InternalName.replaced) WHERE e = \(entity.id) AND \(same("OLD"));\n"
        return """
            CREATE TRIGGER \(name("delete")) AFTER DELETE ON \(table) BEGIN
            \(forget)INSERT INTO \(InternalName.log)(e, r, k, t\(preserved.map { ", c\($0.slot)" }.joined()))
            VALUES (\(entity.id), \(row("OLD")), \(ChangeKind.delete.code), \(Self.now)\
            \(preserved.map { ", OLD.\($0.name.quotedName)" }.joined()));
            END
            """
    }

    // MARK: Rows that REPLACE displaces
    //
    // With recursive_triggers off, which is what the sqlite3 shell and Python have, a row that is displaced fires no
    // delete trigger. Before the statement the rows in its way are noted, after it those of them that are gone are logged
    // as deleted. Notes of a statement that failed are harmless: their rows are still there, or left a log row of their own.

    /// Unique keys through which a row with another identity or integer key can be displaced.
    private var watchedKeys: [UniqueKey] {
        let rowKey = entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name)
        return entity.uniqueKeys.filter { !$0.hasExpression && Set($0.columns) != Set(rowKey) }
    }

    /// True where an insert can displace a row through the integer key that had another identity.
    private var watchesKeyOnInsert: Bool { entity.integerKey != nil && !entity.identityColumns.isEmpty }

    private var watchesInserts: Bool { !watchedKeys.isEmpty || watchesKeyOnInsert }

    private var watchesUpdates: Bool { !watchedKeys.isEmpty || entity.integerKey != nil }

    /// How a noted row is told: by its integer key, or by its identity.
    private func same(_ version: String) -> String {
        if let key = entity.integerKey { return "r = \(version).\(key.quotedName)" }
        return sameIdentity(noted: "", as: version)
    }

    private func sameIdentity(noted: String, as version: String) -> String {
        entity.identityColumns.map { "\(noted)c\($0.slot) IS \(version).\($0.name.quotedName)" }.joined(separator: " AND ")
    }

    private func logReplaced(isUpdate: Bool) -> String {
        guard isUpdate ? watchesUpdates : watchesInserts else { return "" }
        var terms: [String] = []
        if let key = entity.integerKey { terms.append("t.\(key.quotedName) = n.r") }
        if !entity.identityColumns.isEmpty { terms.append(sameIdentity(noted: "n.", as: "t")) }
        var gone = "NOT EXISTS (SELECT 1 FROM \(table) AS t WHERE \(terms.joined(separator: " AND ")))"
        if isUpdate, let key = entity.integerKey?.quotedName {
            gone = "(\(gone) OR (n.r = NEW.\(key) AND OLD.\(key) <> NEW.\(key)))"
        }
        let columns = preserved.map { ", c\($0.slot)" }.joined()
        return """
            INSERT INTO \(InternalName.log)(e, r, k, t\(columns))
            SELECT DISTINCT \(entity.id), n.r, \(ChangeKind.delete.code), \(Self.now)\(columns)
            FROM \(InternalName.replaced) AS n WHERE n.e = \(entity.id) AND \(gone);
            DELETE FROM \(InternalName.replaced) WHERE e = \(entity.id);

            """
    }

    /// Statements that note the rows in the way of the new version, but not the row that is being updated itself.
    private func notes(isUpdate: Bool) -> String {
        var conditions = watchedKeys.map { unique in
            zip(unique.columns, unique.collations).map {
                "t.\($0.quotedName) = NEW.\($0.quotedName) COLLATE \($1.quotedName)"
            }.joined(separator: " AND ") + (unique.condition.map { " AND (\($0))" } ?? "")
        }
        if let key = entity.integerKey?.quotedName, isUpdate || watchesKeyOnInsert {
            conditions.append("t.\(key) = NEW.\(key)")
        }
        var other = ""
        if isUpdate {
            let key = entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name)
            let same = key.map { "t.\($0.quotedName) IS OLD.\($0.quotedName)" }.joined(separator: " AND ")
            other = " AND NOT (\(same))"
        }
        let columns = preserved.map { ", c\($0.slot)" }.joined()
        let read = preserved.map { ", t.\($0.name.quotedName)" }.joined()
        let key = entity.integerKey.map { "t.\($0.quotedName)" } ?? "NULL"
        return conditions.map {
            """
            INSERT INTO \(InternalName.replaced)(e, r\(columns))
            SELECT \(entity.id), \(key)\(read) FROM \(table) AS t WHERE \($0)\(other);
            """
        }.joined(separator: "\n")
    }

    private var beforeInsert: String {
        """
        CREATE TRIGGER \(name("before_insert")) BEFORE INSERT ON \(table) BEGIN
        DELETE FROM \(InternalName.replaced) WHERE e = \(entity.id);
        \(notes(isUpdate: false))
        END
        """
    }

    private var beforeUpdate: String {
        let columns = Set(watchedKeys.flatMap(\.columns) + (entity.integerKey.map { [$0] } ?? [])).sorted()
        return """
            CREATE TRIGGER \(name("before_update"))
            BEFORE UPDATE OF \(columns.map(\.quotedName).joined(separator: ", ")) ON \(table) BEGIN
            DELETE FROM \(InternalName.replaced) WHERE e = \(entity.id);
            \(notes(isUpdate: true))
            END
            """
    }
}

extension EntityColumn {
    /// By SQLite's rules for the affinity of a declared type (https://sqlite.org/datatype3.html, section 3.1).
    var hasNoAffinity: Bool {
        let type = declaredType.uppercased()
        if type.isEmpty { return true }
        for word in ["INT", "CHAR", "CLOB", "TEXT"] where type.contains(word) { return false }
        return type.contains("BLOB")
    }
}
