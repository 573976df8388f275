package import GRDB
import GRDBSQLite

/// The statements that a connection keeps prepared: how often each was run, and how often SQLite had to recompile it.
///
/// A statement that is run for the first time since the schema changed is recompiled. So compare those that are run
/// regularly: which others are run depends on the rest of the process, whose catalogs are in a common cache.
package struct KeptStatements {
    private var counts: [String: (runs: Int32, recompilations: Int32)] = [:]

    package init(_ db: Database) {
        var next = sqlite3_next_stmt(db.sqliteConnection, nil)
        while let statement = next {
            let sql = sqlite3_sql(statement).map { String(cString: $0) } ?? ""
            counts[sql, default: (0, 0)].runs += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_RUN, 0)
            counts[sql, default: (0, 0)].recompilations += sqlite3_stmt_status(
                statement, SQLITE_STMTSTATUS_REPREPARE, 0)
            next = sqlite3_next_stmt(db.sqliteConnection, statement)
        }
    }

    /// Returns the SQL of the statements that were run since then.
    package func run(since earlier: KeptStatements) -> Set<String> {
        sql { $0.runs > earlier.counts[$1]?.runs ?? 0 }
    }

    /// Returns the SQL of the statements that were recompiled since then.
    package func recompiled(since earlier: KeptStatements) -> Set<String> {
        sql { $0.recompilations > earlier.counts[$1]?.recompilations ?? 0 }
    }

    private func sql(where isIncluded: ((runs: Int32, recompilations: Int32), String) -> Bool) -> Set<String> {
        Set(counts.filter { isIncluded($0.value, $0.key) }.keys)
    }
}
