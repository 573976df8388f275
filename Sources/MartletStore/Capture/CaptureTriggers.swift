/// The SQL of the triggers that record every change of a table in the log, whichever program makes it.
///
/// The SQL works in every SQLite since 3.37, and uses no functions of Martlet: a trigger runs in the connection of the
/// writing program, which doesn't have them.
package struct CaptureTriggers {
    package let entity: Entity

    private let replacing: ReplaceTriggers

    package init(_ entity: Entity) {
        self.entity = entity
        replacing = ReplaceTriggers(entity: entity)
    }

    /// The current time in milliseconds since 1970. The rounding makes SQLite's Julian day exact.
    package static let now = "CAST(julianday('now') * 86400000.0 + 0.5 AS INTEGER) - 210866760000000"

    /// The statements that create all triggers of the table.
    package var statements: [String] {
        inserts + [delete] + updates + replacing.statements
    }

    /// The quoted names of the triggers without which a change would go unseen.
    var capturing: [String] {
        (inserts + [delete] + updates).compactMap { $0.split(separator: " ", maxSplits: 3).dropFirst(2).first }.map(
            String.init)
    }

    /// Returns the names of all triggers that this version or an earlier one may have created.
    package static func names(_ id: Int64) -> [String] {
        ["insert", "insert_number", "update", "update_key", "delete", "before_insert", "before_update"].map {
            InternalName.trigger(id, $0)
        }
    }

    private var table: String { entity.name.quotedName }

    /// Returns the SQL of the integer key, or NULL if the rows have no stable one.
    private func row(_ version: String) -> String {
        entity.integerKey.map { "\(version).\($0.quotedName)" } ?? "NULL"
    }

    private func name(_ event: String) -> String { InternalName.trigger(entity.id, event).quotedName }

    private var slots: String { entity.columns.map { ", c\($0.slot)" }.joined() }

    private func values(_ version: String) -> String {
        entity.columns.map { ", \(version).\($0.name.quotedName)" }.joined()
    }

    /// One trigger, or two of which only one runs for a row.
    private var inserts: [String] {
        guard let displaces = replacing.displaces else { return [insert("insert", replacing.afterInsert)] }
        return [
            insert("insert", when: "NOT (\(displaces))", ""),
            insert("insert_number", when: displaces, replacing.afterInsert),
        ]
    }

    private func insert(_ event: String, when condition: String? = nil, _ before: String) -> String {
        """
        CREATE TRIGGER \(name(event)) AFTER INSERT ON \(table)\(condition.map { " WHEN \($0)" } ?? "") BEGIN
        \(before)INSERT INTO \(InternalName.log)(e, r, k, t\(slots))
        VALUES (\(entity.id), \(row("NEW")), \(ChangeKind.insert.code), \(Self.now)\(values("NEW")));
        END
        """
    }

    private func differs(_ column: EntityColumn) -> String { column.isUpdated }

    /// Returns SQL that is true if the column counts as changed: because it or another column of its register is
    /// changed, or because a foreign-key action of the update on its own row may have changed it.
    private func isChanged(_ column: EntityColumn, isPlain: Bool) -> String {
        let register = entity.register(of: column)
        var terms = register.map(differs)
        if !isPlain, let key = entity.localKey?.quotedName, register.contains(where: mayComeBack) {
            terms.append("OLD.\(key) <> NEW.\(key)")
        }
        return terms.count > 1 ? "(\(terms.balanced(" OR ")))" : terms[0]
    }

    /// Returns whether the column belongs to a foreign key to the table itself that has an action. If the row refers to
    /// itself, the action changes the row under its new key, and is logged first. Nobody could tell which row that
    /// change belongs to, so the update includes the result of the action.
    private func mayComeBack(_ column: EntityColumn) -> Bool {
        entity.foreignKeys.contains {
            $0.followsUpdates && $0.target.lowercased() == entity.name.lowercased() && $0.columns.contains(column.name)
        }
    }

    /// SQL that is true for an update that moves the row to another key or changes its identity.
    private var moves: String {
        var terms = entity.identityColumns.map(differs)
        if let key = entity.integerKey { terms.append("OLD.\(key.quotedName) <> NEW.\(key.quotedName)") }
        return terms.isEmpty ? "0" : "(" + terms.balanced(" OR ") + ")"
    }

    /// Two triggers, of which only one runs for a row: most updates change neither the key nor anything unique, and
    /// need not look at the old state, nor at conflicting rows.
    private var updates: [String] {
        let columns = entity.columns
        guard !replacing.watchesEveryUpdate else {
            return [update("update_key", columns, when: changes(columns), isPlain: false)]
        }
        let special = Set(entity.identityColumns.map(\.name)).union(replacing.watchedColumns)
        let plain = columns.filter { !special.contains($0.name) }
        var terms = columns.filter { special.contains($0.name) }.map(differs)
        if let key = entity.localKey { terms.append("OLD.\(key.quotedName) <> NEW.\(key.quotedName)") }
        var triggers: [String] = []
        if !terms.isEmpty {
            triggers.append(update("update_key", columns, when: terms.balanced(" OR "), isPlain: false))
        }
        if !plain.isEmpty {
            let others = terms.isEmpty ? "" : " AND NOT (\(terms.balanced(" OR ")))"
            let registers = Set(plain.flatMap { entity.register(of: $0).map(\.slot) })
            triggers.append(
                update(
                    "update", columns.filter { registers.contains($0.slot) },
                    when: "(\(plain.map(differs).balanced(" OR ")))\(others)", isPlain: true))
        }
        return triggers
    }

    private func changes(_ columns: [EntityColumn]) -> String {
        var changed = columns.map(differs)
        if let key = entity.localKey { changed.append("OLD.\(key.quotedName) <> NEW.\(key.quotedName)") }
        return changed.balanced(" OR ")
    }

    /// - Parameters:
    ///   - columns: The columns that may have changed.
    ///   - isPlain: True if neither the key nor the identity has changed.
    private func update(_ event: String, _ columns: [EntityColumn], when condition: String, isPlain: Bool) -> String {
        let identity = entity.identityColumns
        let all = identity.filter { !columns.contains($0) } + columns
        let slots = all.map { ", c\($0.slot)" }.joined()
        let renames = isPlain ? "" : identity.map(differs).balanced(" OR ")
        let new = all.map { column in
            let name = "NEW.\(column.name.quotedName)"
            if identity.contains(column) { return ", " + name }
            let value = isPlain ? name : current(column)
            return """
                , CASE WHEN \(isChanged(column, isPlain: isPlain))\(renames.isEmpty ? "" : " OR \(renames)") THEN \
                \(value) END
                """
        }.joined()
        let kept = entity.keepsOldValues ? all : isPlain ? [] : identity
        let old = kept.map { column in
            let name = "OLD.\(column.name.quotedName)"
            return identity.contains(column)
                ? ", " + name : ", CASE WHEN \(isChanged(column, isPlain: isPlain)) THEN \(name) END"
        }.joined()
        let before = """
            INSERT INTO \(InternalName.log)(e, r, k, t\(kept.map { ", c\($0.slot)" }.joined()))
            SELECT \(entity.id), \(row("OLD")), \(ChangeKind.Mark.before), \(Self.now)\(old)\
            \(entity.keepsOldValues ? "" : " WHERE \(moves)");

            """
        // The form of a mask depends on the highest slot of the table.
        let mask = ChangeMask.expression(
            entity.columns.map {
                (slot: $0.slot, condition: columns.contains($0) ? isChanged($0, isPlain: isPlain) : nil)
            })
        return """
            CREATE TRIGGER \(name(event)) AFTER UPDATE ON \(table) WHEN \(condition) BEGIN
            \(isPlain ? "" : replacing.afterUpdate)\(isPlain && !entity.keepsOldValues ? "" : before)\
            INSERT INTO \(InternalName.log)(e, r, k, m, t\(slots))
            VALUES (\(entity.id), \(row("NEW")), \(ChangeKind.update.code), \(mask), \(Self.now)\(new));
            \(isPlain ? "" : replacing.afterUpdateIsLogged)END
            """
    }

    /// Returns SQL for the current value of the updated row. `NEW` is from before foreign-key actions. They may also
    /// change the updated row: if it refers to itself by a value that the update changed, or through a user's trigger
    /// on the rows that refer to it.
    private func current(_ column: EntityColumn) -> String {
        let key = entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name)
        let match = key.map { "_martlet_row.\($0.quotedName) = NEW.\($0.quotedName)" }.joined(separator: " AND ")
        let isNull = key.map { "NEW.\($0.quotedName) IS NULL" }.joined(separator: " OR ")
        let name = column.name.quotedName
        return "CASE WHEN \(isNull) THEN NEW.\(name) ELSE "
            + "(SELECT _martlet_row.\(name) FROM \(table) AS _martlet_row WHERE \(match)) END"
    }

    private var preserved: [EntityColumn] { entity.preservedColumns }

    private var delete: String {
        """
        CREATE TRIGGER \(name("delete")) AFTER DELETE ON \(table) BEGIN
        INSERT INTO \(InternalName.log)(e, r, k, t\(preserved.map { ", c\($0.slot)" }.joined()))
        SELECT \(entity.id), \(row("OLD")), \(ChangeKind.delete.code), \(Self.now)\
        \(preserved.map { ", OLD.\($0.name.quotedName)" }.joined())\
        \(replacing.isNotLogged.map { " WHERE \($0)" } ?? "");
        \(replacing.afterDelete)END
        """
    }
}

extension Array where Element == String {
    /// Returns the terms joined by an operator, as a balanced tree: SQLite limits the depth of an expression, and a
    /// chain is deep.
    func balanced(_ separator: String) -> String {
        guard count > 8 else { return joined(separator: separator) }
        let middle = count / 2
        let halves = [Array(self[..<middle]), Array(self[middle...])].map { "(" + $0.balanced(separator) + ")" }
        return halves.joined(separator: separator)
    }
}

extension EntityColumn {
    /// SQL that is true in an update trigger if the value or its type has changed.
    var isUpdated: String {
        let name = name.quotedName
        let comparison = "OLD.\(name) IS NOT NEW.\(name) COLLATE BINARY"
        let types = "typeof(OLD.\(name)) <> typeof(NEW.\(name))"
        // Without affinity, 1 and 1.0 are equal, but not the same value.
        return switch affinity {
        case .blob: "(\(comparison) OR \(types))"
        // -9223372036854775808.0 is the only real that SQLite leaves as it is although an integer equals it.
        case .integer, .numeric: "(\(comparison) OR (OLD.\(name) = -9223372036854775808 AND \(types)))"
        case .text, .real: comparison
        }
    }
}
