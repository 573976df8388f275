/// The SQL that records rows which `INSERT OR REPLACE` and `UPDATE OR REPLACE` displace.
///
/// With recursive_triggers off, which is what the sqlite3 shell and Python have, a row that is displaced fires no
/// delete trigger. Before the statement the rows in its way are noted, after it those of them that are gone are logged
/// as deleted, ahead of the change itself.
///
/// A note is left behind where the statement displaces nothing after all (`OR IGNORE`, an upsert). It counts for
/// nothing from then on (docs/decisions/0028):
/// - A note has the time of its statement, which is one and the same for all that the statement does, its triggers and
///   foreign-key actions included. Notes of another time are not read, and dropped by the next statement that looks.
/// - Whatever takes a noted row away with a log row of its own drops the note: the delete trigger that of its row, the
///   update triggers that of theirs, before and after it moves, an agent all of them before it writes.
///
/// So a noted row that is gone was displaced without a trace. Notes of rows that are still there stay until their
/// statement is over: it may be one that a trigger or a foreign-key action of an outer one runs.
///
/// What a BEFORE trigger of the user's puts in the way is not noted: that is for the audit to find.
struct ReplaceTriggers {
    let entity: Entity

    private var table: String { entity.name.quotedName }

    /// What the table is called in a query. Its own name, since the condition of a partial index may use that, unless
    /// the name means something else in a trigger.
    private var alias: String { ["new", "old"].contains(entity.name.lowercased()) ? "t" : table }

    private var rowKey: [String] { entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name) }

    /// Unique keys through which a row with another identity or integer key can be displaced.
    private var keys: [UniqueKey] {
        entity.uniqueKeys.filter { key in
            guard !key.hasExpression, Set(key.columns) == Set(rowKey) else { return true }
            // 'a' and 'A' may be one to the index, and yet two identities.
            return entity.integerKey == nil && key.joinsDifferentValues(entity)
        }
    }

    /// True where an insert can displace a row through the integer key that had another identity.
    private var watchesKeyOnInsert: Bool { entity.integerKey != nil && !entity.identityColumns.isEmpty }

    /// True of a new row that can displace one, where that is plain from the row alone: identities without affinity are
    /// taken for one by the index only where they are numbers, 1 and 1.0. Nil where every new row may.
    ///
    /// The many rows whose key is a blob or text then cost nothing more than their entry in the log.
    var displaces: String? {
        guard !keys.isEmpty, !watchesKeyOnInsert,
            keys.allSatisfy({
                !$0.hasExpression && Set($0.columns) == Set(rowKey)
                    && $0.collations.allSatisfy { $0.uppercased() == "BINARY" }
            })
        else { return nil }
        return entity.identityColumns.filter(\.hasNoAffinity).map {
            "typeof(NEW.\($0.name.quotedName)) IN ('integer', 'real')"
        }.balanced(" OR ")
    }

    private var watchesInserts: Bool { !keys.isEmpty || watchesKeyOnInsert }

    private var watchesUpdates: Bool { !keys.isEmpty || entity.integerKey != nil || goesWithOthers }

    var statements: [String] {
        (watchesInserts ? [beforeInsert] : []) + (watchesUpdates ? [beforeUpdate] : [])
    }

    private func name(_ event: String) -> String { InternalName.trigger(entity.id, event).quotedName }

    // MARK: After the statement

    /// For the delete trigger, once the row is logged as deleted. It may have been on its way into the place of another
    /// one, which took it along (ON DELETE CASCADE): then no update trigger says that the other one is gone, and this
    /// one does.
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

    /// False of a row that was logged so before its own delete trigger (recursive_triggers) came to run.
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
        // The row that was updated did not go: it moved.
        let other = " AND NOT (\(isNoted("OLD")))"
        guard let key = entity.integerKey?.quotedName else { return logGone("NOT \(isThere)", but: other) }
        return logGone("(NOT \(isThere) OR (r = NEW.\(key) AND OLD.\(key) <> NEW.\(key)))", but: other)
    }

    /// True of a note that is not of the statement that runs now.
    private static let isStale = "t IS NOT (\(CaptureTriggers.now))"

    /// - Parameters:
    ///   - isGone: true of a note whose row is no longer there.
    ///   - exception: what is also true of one whose row was displaced.
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

    /// Whether the noted row is this one. Its integer key alone doesn't tell: the row that has taken that may be
    /// changed by a foreign-key action before the statement is over.
    private func isNoted(_ version: String) -> String {
        let key = entity.integerKey.map { "\(InternalName.replaced).r = \(version).\($0.quotedName)" }
        return ([key].compactMap(\.self) + sameIdentity(version)).joined(separator: " AND ")
    }

    private func sameIdentity(_ version: String) -> [String] {
        entity.identityColumns.flatMap { column in
            // The log's columns have no collation, so that case matters here; and no affinity.
            let (noted, value) = ("\(InternalName.replaced).c\(column.slot)", "\(version).\(column.name.quotedName)")
            let mayBeOfTwoTypes = column.affinity != .text && column.affinity != .real
            return ["\(noted) IS \(value)"] + (mayBeOfTwoTypes ? ["typeof(\(noted)) = typeof(\(value))"] : [])
        }
    }

    private var isThere: String {
        var terms: [String] = []
        if let key = entity.integerKey {
            terms.append("\(alias).\(key.quotedName) = \(InternalName.replaced).r")
        } else {
            // With the table's own collation, so that its index is used.
            terms += entity.identityColumns.map {
                "\(alias).\($0.name.quotedName) IS \(InternalName.replaced).c\($0.slot)"
            }
        }
        terms += sameIdentity(alias)
        return "EXISTS (SELECT 1 FROM \(table) AS \(alias) WHERE \(terms.joined(separator: " AND ")))"
    }

    // MARK: Before the statement

    /// The columns whose values decide whether an update displaces a row, apart from the integer key.
    var watchedColumns: Set<String> { Set(keys.flatMap(\.readColumns)) }

    /// True where it is not to be seen from the columns that change: from a condition, or a generated column.
    var watchesEveryUpdate: Bool { watchesGenerated || keys.contains { $0.condition != nil } }

    private var watchesGenerated: Bool {
        let settable = Set(entity.columns.map(\.name)).union(rowKey)
        return keys.contains { !settable.isSuperset(of: $0.readColumns) }
    }

    private var beforeInsert: String {
        """
        CREATE TRIGGER \(name("before_insert")) BEFORE INSERT ON \(table) WHEN \(displaces.map { "(\($0)) AND " } ?? "")\
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
            \(forget)\(notes(isUpdate: true))END
            """
    }

    /// True of an update that takes a row away from where it was noted: it goes on elsewhere. An upsert notes the row
    /// that it then updates, and a foreign-key action that the update brings about must not take that for one that is
    /// gone.
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

    /// True of every row. In a BEFORE UPDATE trigger, SQLite works out a generated column of `NEW` with NULL for each
    /// column that the update does not set and that no such trigger mentions (3.40).
    private var mentionOfColumns: String {
        guard watchesGenerated else { return "" }
        return " AND " + entity.columns.map { "typeof(NEW.\($0.name.quotedName))" }.balanced(" || ") + " <> ''"
    }

    /// How many notes of one statement are kept: those that its newest rows need, and a few of outer statements.
    private var mostNotes: Int { max(16, 4 * (keys.count + 1)) }

    /// What is true of the rows in the way of the new version, but not of the row that is being updated itself.
    private func conditions(isUpdate: Bool) -> [String] {
        var conditions = keys.map { unique in
            terms(unique).joined(separator: " AND ") + (unique.condition.map { " AND (\($0)\n)" } ?? "")
        }
        if let key = entity.integerKey?.quotedName, isUpdate || watchesKeyOnInsert {
            conditions.append("\(alias).\(key) = NEW.\(key)")
        }
        // A row that takes another one's name leaves nothing to log, unless it goes with it.
        if entity.integerKey == nil, isUpdate, goesWithOthers {
            conditions.append(
                rowKey.map { "\(alias).\($0.quotedName) = NEW.\($0.quotedName)" }.joined(separator: " AND "))
        }
        guard isUpdate else { return conditions }
        let same = rowKey.map { "\(alias).\($0.quotedName) IS OLD.\($0.quotedName)" }.joined(separator: " AND ")
        return conditions.map { "\($0) AND NOT (\(same))" }
    }

    /// What is true of rows that have the same in each term of the index as the new version.
    private func terms(_ key: UniqueKey) -> [String] {
        var columns = key.columns[...]
        return key.collations.enumerated().map { place, collation in
            guard let expression = key.expressions[place] else {
                let name = (columns.popFirst() ?? "").quotedName
                return "\(alias).\(name) = NEW.\(name) COLLATE \(collation.quotedName)"
            }
            // The expression names columns. Beside the new version as a row, it is the same SQL for both of them.
            let new = key.expressionColumns.map { "NEW.\($0.quotedName) AS \($0.quotedName)" }
            let source = "(SELECT \(new.isEmpty ? "NULL" : new.joined(separator: ", "))) AS \(alias)"
            return "(\(expression)) = (SELECT \(expression) FROM \(source)) COLLATE \(collation.quotedName)"
        }
    }

    private func notes(isUpdate: Bool) -> String {
        let columns = entity.preservedColumns.map { ", c\($0.slot)" }.joined()
        let read = entity.preservedColumns.map { ", \(alias).\($0.name.quotedName)" }.joined()
        let key = entity.integerKey.map { "\(alias).\($0.quotedName)" } ?? "NULL"
        let limit = """
            DELETE FROM \(InternalName.replaced) WHERE e = \(entity.id) \
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
    /// The columns whose values decide what the key is, apart from its condition.
    fileprivate var readColumns: [String] { columns + expressionColumns }

    /// True where two values that differ are one to the index: by its collation, or 1 and 1.0.
    func joinsDifferentValues(_ entity: Entity) -> Bool {
        collations.contains { $0.uppercased() != "BINARY" }
            || columns.contains { name in entity.columns.first { $0.name == name }?.hasNoAffinity == true }
    }
}

extension Entity {
    /// What the log keeps of a row that goes.
    var preservedColumns: [EntityColumn] { keepsOldValues ? columns : identityColumns }
}
