import MartletStore

/// The parts besides tables and their constraints: the user's triggers, tables that they maintain, and schema changes.
extension SchemaGenerator {
    // MARK: Triggers

    /// Columns that may be set to anything, and on which nothing else depends.
    private func free(_ table: Table) -> [Column] {
        let claims = (table.constraints + indexes + table.columns.flatMap(\.clauses)).joined(separator: " ")
        return table.columns.filter { column in
            !column.isReference
                && !column.clauses.contains {
                    $0.hasPrefix("UNIQUE") || $0.hasPrefix("PRIMARY") || $0.hasPrefix("AS (")
                }
                && !claims.contains(column.quoted) && !column.isNotNull && !table.isStrict
        }
    }

    /// An SQL condition that is true for the row that fired a trigger.
    private func sameRow(_ table: Table, _ version: String) -> String {
        table.targets[0].columns.map { "\($0.quoted) IS \(version).\($0.quoted)" }.joined(separator: " AND ")
    }

    mutating func addTriggers(_ number: Int) {
        guard wants(.triggers, in: 3) else { return }
        let table = tables[number]
        let name = "r\(number + 1)"
        let own = free(table)
        let other = random.pick(tables)
        let others = free(other)
        let event = random.pick(["INSERT", "UPDATE", "DELETE"])
        let kind = random.below(4)
        let value = random.pick(["'k1'", "7", "NULL"])
        if kind == 0, let column = others.first, other.name != table.name {
            // Updates many rows of another table.
            triggers.append(
                "CREATE TRIGGER \(name) AFTER \(event) ON \(table.quoted) BEGIN UPDATE \(other.quoted) "
                    + "SET \(column.quoted) = coalesce(\(column.quoted), 0) + 1; END")
        } else if kind == 1, own.count >= 2 {
            // Updates the row itself.
            triggers.append(
                "CREATE TRIGGER \(name) AFTER UPDATE OF \(own[0].quoted) ON \(table.quoted) BEGIN "
                    + "UPDATE \(table.quoted) SET \(own[1].quoted) = \(value) WHERE \(sameRow(table, "NEW")); END")
        } else if kind == 2, let column = own.first {
            let what = random.pick([
                "RAISE(IGNORE)", "RAISE(ABORT, 'no')", "RAISE(FAIL, 'no')", "RAISE(ROLLBACK, 'no')",
            ])
            triggers.append(
                "CREATE TRIGGER \(name) BEFORE \(event == "DELETE" ? "UPDATE" : event) ON \(table.quoted) "
                    + "WHEN NEW.\(column.quoted) IS \(value) BEGIN SELECT \(what); END")
        } else if let column = own.first {
            triggers.append(
                "CREATE TRIGGER \(name) AFTER INSERT ON \(table.quoted) WHEN NEW.\(column.quoted) IS NULL BEGIN "
                    + "UPDATE \(table.quoted) SET \(column.quoted) = \(value) WHERE \(sameRow(table, "NEW")); END")
        }
    }

    // MARK: Derived tables

    /// Adds untracked tables that triggers maintain, in the way that SQLite's documentation shows.
    mutating func addDerived(_ number: Int) {
        let table = tables[number]
        if wants(.counters, in: 4) {
            let name = "\(SimulatedSchema.keptPrefix)\(number + 1)"
            triggers += [
                "CREATE TABLE \(name)(n INTEGER NOT NULL)", "INSERT INTO \(name) VALUES (0)",
                "CREATE TRIGGER \(name)i AFTER INSERT ON \(table.quoted) BEGIN UPDATE \(name) SET n = n + 1; END",
                "CREATE TRIGGER \(name)d AFTER DELETE ON \(table.quoted) BEGIN UPDATE \(name) SET n = n - 1; END",
            ]
        }
        guard table.hasIntegerKey else { return }
        let id = table.columns[0].quoted
        // If a foreign-key action makes an update of a row update that row again, its triggers run from the inner
        // update outwards, and the index is told to remove values that it doesn't contain. SQLite itself then reports
        // it as malformed.
        let clauses = table.constraints + table.columns.map { $0.clauses.joined(separator: " ") }
        let updatesItself = clauses.contains {
            $0.contains("REFERENCES \(table.quoted)")
                && ($0.contains("ON UPDATE SET") || $0.contains("ON UPDATE CASCADE"))
        }
        if let text = table.columns.first(where: { $0.isText && !$0.isReference }), wants(.fullText, in: 3),
            !updatesItself
        {
            let (name, c) = ("f\(number + 1)", text.quoted)
            let remove = "INSERT INTO \(name)(\(name), rowid, \(c)) VALUES ('delete', OLD.\(id), OLD.\(c));"
            let add = "INSERT INTO \(name)(rowid, \(c)) VALUES (NEW.\(id), NEW.\(c));"
            triggers += [
                """
                CREATE VIRTUAL TABLE \(name) USING fts5(\(c), content=\(table.name.quotedText), \
                content_rowid=\(table.columns[0].name.quotedText))
                """,
                "CREATE TRIGGER \(name)i AFTER INSERT ON \(table.quoted) BEGIN \(add) END",
                "CREATE TRIGGER \(name)d AFTER DELETE ON \(table.quoted) BEGIN \(remove) END",
                "CREATE TRIGGER \(name)u AFTER UPDATE ON \(table.quoted) BEGIN \(remove) \(add) END",
            ]
        }
        // If both the table and the trigger specify a conflict resolution, the trigger doesn't run on apply.
        let decides = (table.constraints + table.columns.flatMap(\.clauses)).contains { $0.contains("ON CONFLICT") }
        if !decides, let first = table.columns.first(where: { $0.isNumber && !$0.isReference && $0.quoted != id }),
            wants(.rtree, in: 4)
        {
            let (name, c) = ("x\(number + 1)", first.quoted)
            let remove = "DELETE FROM \(name) WHERE id = OLD.\(id);"
            let add = """
                INSERT OR REPLACE INTO \(name)(id, lo, hi) \
                VALUES (NEW.\(id), coalesce(NEW.\(c), 0), coalesce(NEW.\(c), 0));
                """
            triggers += [
                "CREATE VIRTUAL TABLE \(name) USING rtree(id, lo, hi)",
                "CREATE TRIGGER \(name)i AFTER INSERT ON \(table.quoted) BEGIN \(add) END",
                "CREATE TRIGGER \(name)d AFTER DELETE ON \(table.quoted) BEGIN \(remove) END",
                "CREATE TRIGGER \(name)u AFTER UPDATE ON \(table.quoted) BEGIN \(remove) \(add) END",
            ]
        }
    }

    // MARK: Versions

    /// The changes from one version of the schema to the next.
    mutating func changes() -> [SimulatedSchema.Upgrade] {
        var changes: [SimulatedSchema.Upgrade] = []
        for place in 0..<3 {
            let number = random.below(tables.count)
            let table = tables[number]
            let kind = random.below(5)
            let column = random.pick(free(table).isEmpty ? [table.columns[0]] : free(table))
            let type = type(table)
            let hasDefault = random.once(in: 2)
            guard wants(.alters, in: 2) else { continue }
            let name = "n\(place + 1)"
            switch kind {
            case 0 where !free(table).isEmpty && renamed[table.name] == nil:
                renamed[table.name] = column.name
                var change = change(
                    "ALTER TABLE \(table.quoted) RENAME COLUMN \(column.quoted) TO \(name)", table, name, needs: column)
                change.renames = (table.name, column.name, name)
                changes.append(change)
            // Not for a column that may be renamed: a seed makes only some of the changes.
            case 1 where renamed[table.name] != column.name:
                changes.append(
                    SimulatedSchema.Upgrade(
                        sql: "CREATE INDEX \(name) ON \(table.quoted)(\(column.quoted))",
                        probe: "SELECT 1 FROM sqlite_schema WHERE name = '\(name)'",
                        needs: [table.quoted, column.quoted]))
            case 2 where table.hasIntegerKey:
                let id = table.columns[0].quoted
                changes.append(
                    SimulatedSchema.Upgrade(
                        sql: """
                            CREATE TABLE \(name)(id INTEGER PRIMARY KEY, body TEXT UNIQUE,
                            owner INTEGER REFERENCES \(table.quoted)(\(id)) ON DELETE SET NULL)
                            """, probe: "SELECT 1 FROM sqlite_schema WHERE name = '\(name)'", attaches: true,
                        needs: [table.quoted]))
            default:
                let value = type.contains("TEXT") || type.contains("CHAR") ? "'k1'" : "1"
                let isStrict = table.isStrict && type == "BLOB"
                let clauses = hasDefault && !isStrict ? " NOT NULL DEFAULT \(value)" : ""
                changes.append(change("ALTER TABLE \(table.quoted) ADD COLUMN \(name) \(type)\(clauses)", table, name))
            }
        }
        return changes
    }

    private func change(_ sql: String, _ table: Table, _ column: String, needs: Column? = nil)
        -> SimulatedSchema.Upgrade
    {
        SimulatedSchema.Upgrade(
            sql: sql, probe: "SELECT 1 FROM pragma_table_info(\(table.name.quotedText)) WHERE name = '\(column)'",
            needs: [table.quoted] + (needs.map { [$0.quoted] } ?? []))
    }
}
