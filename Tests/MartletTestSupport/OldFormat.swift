/// SQL that makes a store look as an earlier version left it, as far as tables differ. Triggers stay as they are today.
package enum OldFormat {
    /// - Parameters:
    ///   - store: the format of the store's own tables. Nil for today's. Before 6, only for stores that never synced;
    ///     3 to 5 had a table of clocks that this does not make.
    ///   - sync: the format of the tables that syncing adds, 8 or later. Nil for today's.
    package static func sql(store: Int? = nil, sync: Int? = nil) -> String {
        // SQLite drops no column while a trigger mentions a column that doesn't exist: the tables that triggers write
        // to come last.
        let statements = (sync.map(syncSteps) ?? []) + (store.map(storeSteps) ?? [])
        return statements.map { "\($0);" }.joined(separator: "\n")
    }

    private static func syncSteps(_ format: Int) -> [String] {
        var steps: [String] = []
        if format < 16 {
            steps += ["DROP TABLE _martlet_ingest"]
        } else if format < 17 {
            steps += ["ALTER TABLE _martlet_ingest DROP COLUMN last"]
        }
        if format < 15 { steps += ["DROP TABLE _martlet_payload_parts"] }
        if format < 14 { steps += ["DROP TABLE _martlet_left", "DROP TABLE _martlet_reused"] }
        if format < 13 { steps += ["DROP TABLE _martlet_unkept"] }
        if format < 12 { steps += ["DROP TABLE _martlet_outbox_parts", "DROP TABLE _martlet_early"] }
        if format < 11 {
            steps += ["DROP INDEX _martlet_quarantine_sequence", "DROP INDEX _martlet_quarantine_place"]
            steps += ["kept", "bytes", "digest", "messages", "origin", "sequence"].map {
                "ALTER TABLE _martlet_quarantine DROP COLUMN \($0)"
            }
        }
        return steps + ["UPDATE _martlet_meta SET value = \(format) WHERE key = 'sync_format'"]
    }

    private static func storeSteps(_ format: Int) -> [String] {
        var steps: [String] = []
        if format < 15 { steps += ["DELETE FROM _martlet_meta WHERE key = 'first_ascending'"] }
        if format < 14 { steps += ["ALTER TABLE _martlet_columns DROP COLUMN referred"] }
        if format < 11 { steps += ["ALTER TABLE _martlet_entities DROP COLUMN chains"] }
        if format < 6 {
            steps += ["origin", "sequence", "at"].map { "ALTER TABLE _martlet_meta DROP COLUMN \($0)" }
        }
        if format < 5 { steps += ["ALTER TABLE _martlet_columns DROP COLUMN added"] }
        if format < 4 {
            steps += ["names", "former_rules"].map { "ALTER TABLE _martlet_entities DROP COLUMN \($0)" }
        }
        if format < 3 { steps += ["DROP TABLE _martlet_recent"] }
        if format < 10 {
            steps += [
                "DROP TABLE _martlet_prints",
                "DELETE FROM _martlet_meta WHERE key GLOB 'printed:*' OR key GLOB 'initial:*'",
            ]
        }
        if format < 9 {
            steps += [
                "DROP TABLE _martlet_reserved", "DROP TABLE _martlet_replaced",
                "CREATE TABLE _martlet_replaced(e INTEGER, r, c1, c2, c3, c4, c5, c6, c7, c8)",
            ]
        }
        return steps + [
            "UPDATE _martlet_meta SET value = \(format) WHERE key = 'format'",
            """
            UPDATE _martlet_meta SET value = (SELECT schema_version FROM pragma_schema_version)
            WHERE key IN ('schema_version', 'trigger_schema')
            """,
        ]
    }
}
