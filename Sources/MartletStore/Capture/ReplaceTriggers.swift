/// The SQL that records rows that `INSERT OR REPLACE` and `UPDATE OR REPLACE` displace.
///
/// With recursive_triggers off, as in the sqlite3 shell and Python, a displaced row fires no delete trigger. So the
/// rows in the way of a statement are noted before it. After it, noted rows that are gone are logged as deleted, ahead
/// of the change itself.
///
/// A note is left behind if the statement displaces nothing after all (`OR IGNORE`, an upsert). It has no effect from
/// then on (docs/decisions/0028):
/// - A note has the time of its statement, which is the same for everything that the statement does, including its
///   triggers and foreign-key actions. Notes of another time are ignored, and dropped by the next statement that looks.
/// - Whatever removes a noted row with a log row of its own drops the note: the delete trigger that of its row, the
///   update triggers those of their rows, before and after they move, and an agent all of them before it writes.
///
/// So a noted row that is gone was displaced without a trace. Notes of rows that still exist stay until their statement
/// is over: it may be one that a trigger or a foreign-key action of an outer statement runs.
///
/// Foreign-key actions run in the middle of an update that displaces a row, and fire triggers. If any of them writes to
/// the updated row, the log has that before the update, see ``afterUpdateIsLogged``. For that, the update is noted too:
/// by the negative number of its table.
///
/// A row that a BEFORE trigger of the user puts in the way is not noted; the audit finds its loss.
struct ReplaceTriggers {
    let entity: Entity

    private var table: String { entity.name.quotedName }

    /// The table's name in a query. It is the table's own name, since the condition of a partial index may use that,
    /// unless the name means something else in a trigger.
    private var alias: String { ["new", "old"].contains(entity.name.lowercased()) ? "t" : table }

    private var rowKey: [String] { entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name) }

    /// Unique keys through which a row with another identity or integer key can be displaced.
    private var keys: [UniqueKey] {
        entity.uniqueKeys.filter { key in
            guard !key.hasExpression, Set(key.columns) == Set(rowKey) else { return true }
            // 'a' and 'A' may be equal to the index, but are two identities.
            return entity.integerKey == nil && key.joinsDifferentValues(entity)
        }
    }

    /// Whether an insert can displace a row with another identity through the integer key.
    private var watchesKeyOnInsert: Bool { entity.integerKey != nil && !entity.identityColumns.isEmpty }

    /// SQL that is true for a new row that can displace another one, if the row alone can tell: the index treats
    /// identities without affinity as equal only if they are numbers, 1 and 1.0. Nil if the row alone can't tell, or if
    /// the table has no such key.
    ///
    /// So the many rows whose key is a blob or text cost nothing more than their log row.
    var displaces: String? {
        guard !keys.isEmpty, !watchesKeyOnInsert,
            keys.allSatisfy({
                !$0.hasExpression && Set($0.columns) == Set(rowKey)
                    && $0.collations.allSatisfy { $0.uppercased() == "BINARY" }
            })
        else { return nil }
        return entity.identityColumns.filter(\.hasNoAffinity).map {
            "typeof(\(new($0.name))) IN ('integer', 'real')"
        }.balanced(" OR ")
    }

    private var watchesInserts: Bool { !keys.isEmpty || watchesKeyOnInsert }

    private var watchesUpdates: Bool { !keys.isEmpty || entity.integerKey != nil || goesWithOthers }

    private var watchesActions: Bool { watchesUpdates && entity.causesActions }

    var statements: [String] {
        (watchesInserts ? [beforeInsert] : []) + (watchesUpdates ? [beforeUpdate] : [])
    }

    private func name(_ event: String) -> String { InternalName.trigger(entity.id, event).quotedName }

    // MARK: After the statement

    /// SQL for the delete trigger, after it has logged the row as deleted. The row may have been about to replace
    /// another one, which took it along (ON DELETE CASCADE). Then no update trigger logs that the other row is gone, so
    /// this one does.
    var afterDelete: String {
        guard watchesInserts || watchesUpdates else { return "" }
        return (goesWithOthers ? logTaker : "") + forget
    }

    private var logTaker: String {
        let gone = "e = \(entity.id) AND NOT (\(Self.isStale)) AND NOT \(isThere) AND NOT (\(isNoted("OLD")))"
        return """
            \(logNoted(gone))
            UPDATE \(InternalName.replaced) SET t = -(\(CaptureTriggers.now)) WHERE \(gone);

            """
    }

    /// SQL that is false for a row that was already logged as deleted before its own delete trigger ran
    /// (recursive_triggers). Nil if that can't happen.
    var isNotLogged: String? {
        guard goesWithOthers, watchesInserts || watchesUpdates else { return nil }
        return "NOT EXISTS (SELECT 1 FROM \(InternalName.replaced) WHERE e = \(entity.id) AND \(isNoted("OLD")) "
            + "AND t = -(\(CaptureTriggers.now)))"
    }

    private var goesWithOthers: Bool { entity.foreignKeys.contains(where: \.followsDeletes) }

    private var forget: String {
        "DELETE FROM \(InternalName.replaced) WHERE e = \(entity.id) AND \(isNoted("OLD"));\n"
    }

    var afterInsert: String {
        watchesInserts ? logGone("NOT \(isThere)") : ""
    }

    var afterUpdate: String {
        guard watchesUpdates else { return "" }
        // The updated row is not gone: it moved.
        let other = " AND NOT (\(isNoted("OLD")))"
        guard let key = entity.integerKey?.quotedName else { return logGone("NOT \(isThere)", but: other) }
        return logGone("(NOT \(isThere) OR (r = NEW.\(key) AND OLD.\(key) <> NEW.\(key)))", but: other)
    }

    /// SQL for the update trigger, after it has logged the update: logs once more what foreign-key actions, and the
    /// triggers that they fired, have written to the row since the update began, with the values that the row has now.
    ///
    /// SQLite overwrites what the actions of the displaced row write to the updated one. And what the actions of the
    /// update itself write is in the log ahead of it, under a key that belongs to the displaced row there.
    var afterUpdateIsLogged: String {
        guard watchesActions else { return "" }
        let (write, row, kind) = ("_martlet_write", "_martlet_row", "_martlet_kind")
        let (update, before) = (ChangeKind.update.code, ChangeKind.Mark.before)
        let keepsOld = entity.keepsOldValues
        let key = entity.integerKey?.quotedName
        let isOfRow =
            key.map { ["\(write).r IN (OLD.\($0), NEW.\($0))"] } ?? sameIdentity("OLD", in: write)
        let match = rowKey.map { "\(row).\($0.quotedName) = NEW.\($0.quotedName)" }
        let values = entity.columns.map { column in
            let value = "\(row).\(column.name.quotedName)"
            guard keepsOld, !entity.identityColumns.contains(column) else { return ", \(value)" }
            return ", CASE \(kind).code WHEN \(before) THEN \(write).c\(column.slot) ELSE \(value) END"
        }
        let mask = keepsOld ? "CASE \(kind).code WHEN \(update) THEN \(write).m END" : "\(write).m"
        return """
            INSERT INTO \(InternalName.log)(e, r, k, m, t\(entity.columns.map { ", c\($0.slot)" }.joined()))
            SELECT \(entity.id), \(key.map { "NEW.\($0)" } ?? "NULL"), \(keepsOld ? "\(kind).code" : "\(update)"), \
            \(mask), \(CaptureTriggers.now)\(values.joined())
            FROM (SELECT max(\(write).id) AS id FROM \(InternalName.replaced) CROSS JOIN \(InternalName.log) AS \(write)
            WHERE \(InternalName.replaced).e = -\(entity.id) AND \(InternalName.replaced).t = \(CaptureTriggers.now)
            AND \(isUpdateNoted) AND \(write).id > \(InternalName.replaced).r
            AND \(write).id < (SELECT max(id) FROM \(InternalName.log)) AND \(write).e = \(entity.id)
            AND \(write).k = \(update) AND \(isOfRow.joined(separator: " AND ")) GROUP BY \(write).m) AS _martlet_last
            CROSS JOIN \(InternalName.log) AS \(write) ON \(write).id = _martlet_last.id
            CROSS JOIN \(table) AS \(row) ON \(match.joined(separator: " AND "))\
            \(keepsOld ? " CROSS JOIN (SELECT \(before) AS code UNION ALL SELECT \(update)) AS \(kind)" : "")
            ORDER BY \(write).id\(keepsOld ? ", \(kind).code = \(update)" : "");
            DELETE FROM \(InternalName.replaced) WHERE e = -\(entity.id) AND \(isUpdateNoted);

            """
    }

    /// SQL that is true for the note of the update on this row. In place of an integer key, it has the last ID of the
    /// log when the update began.
    private var isUpdateNoted: String {
        let same = sameIdentity("OLD")
        guard same.isEmpty, let key = entity.integerKey?.quotedName else { return same.joined(separator: " AND ") }
        return "\(InternalName.replaced).c1 = OLD.\(key)"
    }

    /// SQL for the trigger before an update, after it has noted the rows in the way.
    private var noteUpdate: String {
        let identity = entity.identityColumns
        let columns = identity.isEmpty ? ", c1" : identity.map { ", c\($0.slot)" }.joined()
        let names = identity.isEmpty ? rowKey : identity.map(\.name)
        return """
            INSERT INTO \(InternalName.replaced)(e, r, t\(columns))
            SELECT -\(entity.id), (SELECT ifnull(max(id), 0) FROM \(InternalName.log)), \(CaptureTriggers.now)\
            \(names.map { ", OLD.\($0.quotedName)" }.joined()) WHERE \(isInTheWay(isUpdate: true));

            """
    }

    /// SQL that is true for a note that doesn't belong to the running statement.
    private static let isStale = "t IS NOT (\(CaptureTriggers.now))"

    /// - Parameters:
    ///   - isGone: SQL that is true for a note whose row no longer exists.
    ///   - exception: A further condition for notes whose row was displaced.
    private func logGone(_ isGone: String, but exception: String = "") -> String {
        """
        \(logNoted("e = \(entity.id) AND NOT (\(Self.isStale)) AND \(isGone)\(exception)"))
        DELETE FROM \(InternalName.replaced) WHERE e = \(entity.id) AND (\(Self.isStale) OR \(isGone));

        """
    }

    private func logNoted(_ condition: String) -> String {
        let columns = entity.preservedColumns.map { ", c\($0.slot)" }.joined()
        return """
            INSERT INTO \(InternalName.log)(e, r, k, t\(columns))
            SELECT \(entity.id), r, \(ChangeKind.delete.code), \(CaptureTriggers.now)\(columns)
            FROM \(InternalName.replaced) WHERE \(condition);
            """
    }

    /// Returns SQL that is true if the noted row is this one. The integer key alone doesn't tell: a foreign-key action
    /// may change the row that has taken the key, before the statement is over.
    private func isNoted(_ version: String) -> String {
        let key = entity.integerKey.map { "\(InternalName.replaced).r = \(version).\($0.quotedName)" }
        return ([key].compactMap(\.self) + sameIdentity(version)).joined(separator: " AND ")
    }

    /// - Parameter table: The table that has the values like the log, by slot.
    private func sameIdentity(_ version: String, in table: String = InternalName.replaced) -> [String] {
        entity.identityColumns.flatMap { column in
            // The log's columns have no collation, so case matters here, and no affinity.
            let (noted, value) = ("\(table).c\(column.slot)", "\(version).\(column.name.quotedName)")
            let mayBeOfTwoTypes = column.affinity != .text && column.affinity != .real
            return ["\(noted) IS \(value)"] + (mayBeOfTwoTypes ? ["typeof(\(noted)) = typeof(\(value))"] : [])
        }
    }

    private var isThere: String {
        var terms: [String] = []
        if let key = entity.integerKey {
            terms.append("\(alias).\(key.quotedName) = \(InternalName.replaced).r")
        } else {
            // Uses the table's own collation, so that its index is used.
            terms += entity.identityColumns.map {
                "\(alias).\($0.name.quotedName) IS \(InternalName.replaced).c\($0.slot)"
            }
        }
        terms += sameIdentity(alias)
        return "EXISTS (SELECT 1 FROM \(table) AS \(alias) WHERE \(terms.joined(separator: " AND ")))"
    }

    // MARK: Before the statement

    /// The columns that decide whether an update displaces a row, apart from the integer key.
    var watchedColumns: Set<String> { Set(keys.flatMap(\.readColumns)) }

    /// Whether the changed columns can't tell if an update displaces a row, because that depends on a condition or a
    /// generated column.
    var watchesEveryUpdate: Bool { watchesGenerated || keys.contains { $0.condition != nil } }

    private var watchesGenerated: Bool {
        let settable = Set(entity.columns.map(\.name)).union(rowKey)
        return keys.contains { !settable.isSuperset(of: $0.readColumns) }
    }

    private var beforeInsert: String {
        """
        CREATE TRIGGER \(name("before_insert")) BEFORE INSERT ON \(table) \
        WHEN \(displaces.map { "(\($0)) AND " } ?? "")\
        (\(isInTheWay(isUpdate: false))) BEGIN
        \(notes(isUpdate: false))END
        """
    }

    private var beforeUpdate: String {
        var columns = watchedColumns.union(rowKey).sorted().map(\.quotedName)
        if entity.integerKey != nil {
            columns += ["rowid", "_rowid_", "oid"].filter { name in
                !entity.columns.contains { $0.name.lowercased() == name }
            }
        }
        return """
            CREATE TRIGGER \(name("before_update")) BEFORE UPDATE\
            \(watchesEveryUpdate ? "" : " OF " + columns.joined(separator: ", ")) ON \(table) \
            WHEN \(isInTheWay(isUpdate: true)) OR \(isNotedAndMoves) BEGIN
            \(forget)\(notes(isUpdate: true))\(watchesActions ? noteUpdate : "")END
            """
    }

    /// SQL that is true for an update that moves a noted row. An upsert notes the row that it then updates, and a
    /// foreign-key action of that update must not treat it as gone.
    private var isNotedAndMoves: String {
        var moves = entity.identityColumns.map(\.isUpdated)
        if let key = entity.integerKey?.quotedName { moves.append("OLD.\(key) <> NEW.\(key)") }
        let noted = "EXISTS (SELECT 1 FROM \(InternalName.replaced) WHERE e = \(entity.id) AND \(isNoted("OLD")))"
        return "((\(moves.balanced(" OR "))) AND \(noted))"
    }

    private func isInTheWay(isUpdate: Bool) -> String {
        conditions(isUpdate: isUpdate).map { "EXISTS (SELECT 1 FROM \(table) AS \(alias) WHERE \($0))" }.balanced(
            " OR ")
    }

    /// SQL that is true for every row, and mentions all columns. In a BEFORE UPDATE trigger, SQLite computes a
    /// generated column of `NEW` with NULL for each column that the update does not set and that no such trigger
    /// mentions (3.40).
    private var mentionOfColumns: String {
        guard watchesGenerated else { return "" }
        return " AND " + entity.columns.map { "typeof(NEW.\($0.name.quotedName))" }.balanced(" || ") + " <> ''"
    }

    /// The maximum number of notes to keep: those that the newest rows of a statement need, and a few of outer
    /// statements.
    private var mostNotes: Int { max(16, 4 * (keys.count + 1)) }

    /// Returns SQL conditions for the rows in the way of the new version, except for the updated row itself.
    private func conditions(isUpdate: Bool) -> [String] {
        var conditions = keys.map { unique in
            terms(unique).joined(separator: " AND ") + (unique.condition.map { " AND (\($0)\n)" } ?? "")
        }
        if let key = entity.integerKey?.quotedName, isUpdate || watchesKeyOnInsert {
            conditions.append("\(alias).\(key) = NEW.\(key)")
        }
        // A row that takes over the identity of another one leaves nothing to log, unless it is deleted with it.
        if entity.integerKey == nil, isUpdate, goesWithOthers {
            conditions.append(
                rowKey.map { "\(alias).\($0.quotedName) = \(new($0))" }.joined(separator: " AND "))
        }
        guard isUpdate else { return conditions }
        let same = rowKey.map { "\(alias).\($0.quotedName) IS OLD.\($0.quotedName)" }.joined(separator: " AND ")
        return conditions.map { "\($0) AND NOT (\(same))" }
    }

    /// Returns SQL for the value that a column of the new version will have. Where the column is NOT NULL, REPLACE puts
    /// the default in place of NULL (https://sqlite.org/lang_conflict.html), but only after the BEFORE triggers.
    ///
    /// A default that can't be predicted, such as `random()`, is not known here, and neither is a generated column that
    /// is computed from a default. The audit finds rows that those displace.
    private func new(_ name: String) -> String {
        let value = "NEW.\(name.quotedName)"
        let replacement = entity.columns.first { $0.name == name }?.nullReplacement
        return replacement.map { "coalesce(\(value), \($0))" } ?? value
    }

    /// Returns SQL conditions for the rows that equal the new version in each term of the index.
    private func terms(_ key: UniqueKey) -> [String] {
        var columns = key.columns[...]
        return key.collations.enumerated().map { place, collation in
            guard let expression = key.expressions[place] else {
                let name = columns.popFirst() ?? ""
                return "\(alias).\(name.quotedName) = \(new(name)) COLLATE \(collation.quotedName)"
            }
            let found = comparable(expression, key.expressionColumns)
            return "(\(expression)) = \(found) COLLATE \(collation.quotedName)"
        }
    }

    /// Returns SQL for the value that an expression of an index will have in the new version.
    ///
    /// The expression names columns. With the new version selected as a row, the same SQL works for both rows, and its
    /// columns compare by the collation of the table's columns. `coalesce` has no collation, so that defaults are only
    /// put in place of NULL where there is one.
    private func comparable(_ expression: String, _ columns: [String]) -> String {
        func selected(_ value: (String) -> String) -> String {
            let values = columns.map { "\(value($0)) AS \($0.quotedName)" }
            let source = "(SELECT \(values.isEmpty ? "NULL" : values.joined(separator: ", "))) AS \(alias)"
            return "(SELECT \(expression) FROM \(source))"
        }
        func plain(_ name: String) -> String { "NEW.\(name.quotedName)" }
        let isReplaced = columns.filter { new($0) != plain($0) }.map { "\(plain($0)) IS NULL" }
        guard !isReplaced.isEmpty else { return selected(plain) }
        return "CASE WHEN \(isReplaced.balanced(" OR ")) THEN \(selected(new)) ELSE \(selected(plain)) END"
    }

    private func notes(isUpdate: Bool) -> String {
        let columns = entity.preservedColumns.map { ", c\($0.slot)" }.joined()
        let read = entity.preservedColumns.map { ", \(alias).\($0.name.quotedName)" }.joined()
        let key = entity.integerKey.map { "\(alias).\($0.quotedName)" } ?? "NULL"
        let isOfTable = isUpdate && watchesActions ? "e IN (\(entity.id), -\(entity.id))" : "e = \(entity.id)"
        let limit = """
            DELETE FROM \(InternalName.replaced) WHERE \(isOfTable) \
            AND (\(Self.isStale) OR rowid <= (SELECT max(rowid) FROM \(InternalName.replaced)) - \(mostNotes))\
            \(isUpdate ? mentionOfColumns : "");

            """
        return limit
            + conditions(isUpdate: isUpdate).map {
                """
                INSERT INTO \(InternalName.replaced)(e, r, t\(columns))
                SELECT \(entity.id), \(key), \(CaptureTriggers.now)\(read) FROM \(table) AS \(alias) WHERE \($0)
                AND NOT EXISTS (SELECT 1 FROM \(InternalName.replaced) WHERE e = \(entity.id) AND \(isNoted(alias)));

                """
            }.joined()
    }
}

extension UniqueKey {
    /// The columns that decide the value of the key, apart from its condition.
    fileprivate var readColumns: [String] { columns + expressionColumns }

    /// Returns whether the index treats different values as equal: because of its collation, or 1 and 1.0.
    func joinsDifferentValues(_ entity: Entity) -> Bool {
        collations.contains { $0.uppercased() != "BINARY" }
            || columns.contains { name in entity.columns.first { $0.name == name }?.hasNoAffinity == true }
    }
}

extension Entity {
    /// The columns that the log preserves of a deleted row.
    var preservedColumns: [EntityColumn] { keepsOldValues ? columns : identityColumns }
}
