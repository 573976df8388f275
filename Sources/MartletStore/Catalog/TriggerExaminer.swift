import CMartletSQLite
import GRDB
import GRDBSQLite

/// Finds out what user triggers write, by having SQLite compile them.
struct TriggerExaminer {
    /// The SQL function that tells whether the copy with a given number runs.
    static let gate = "_martlet_derives"
    /// The prefix of the names of copies.
    static let prefix = "_martlet_derived_"

    private let db: Database
    private let handle: OpaquePointer
    /// The names of tracked tables, in lower case.
    private let tracked: Set<String>
    /// The SQL of the tables, by their names in lower case.
    private let tables: [String: String]

    /// Examines all triggers of the file but Martlet's own.
    ///
    /// The connection must have the function ``gate`` and no authorizer. It need not be able to write.
    /// - Parameter tracked: The names of the tracked tables.
    static func examine(_ db: Database, tracked: [String]) throws -> [UserTrigger] {
        let rows = try Row.fetchAll(db, sql: source)
        guard !rows.isEmpty, let handle = db.sqliteConnection else { return [] }
        let tables = try Row.fetchAll(
            db, sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND sql IS NOT NULL")
        // Examine each trigger alone: another one that can't be compiled must not interfere.
        let before = martlet_set_triggers(handle, 0)
        defer { if before > 0 { _ = martlet_set_triggers(handle, before) } }
        let examiner = TriggerExaminer(
            db: db, handle: handle, tracked: Set(tracked.map { $0.lowercased() }),
            tables: Dictionary(
                tables.map { (($0["name"] as String).lowercased(), $0["sql"]) }, uniquingKeysWith: { first, _ in first }
            ))
        return try rows.enumerated().compactMap {
            try examiner.examine($1["name"], $1["tbl_name"], $1["sql"], number: $0)
        }
    }

    /// The SQL that reads the user triggers, in the order in which they were created.
    static let source = """
        SELECT name, tbl_name, sql FROM main.sqlite_schema
        WHERE type = 'trigger' AND name NOT GLOB '\(InternalName.prefix)*' AND sql IS NOT NULL ORDER BY rowid
        """

    private func examine(_ name: String, _ table: String, _ sql: String, number: Int) throws -> UserTrigger? {
        // Triggers on views run only for statements of programs.
        guard let tableSQL = tables[table.lowercased()] else { return nil }
        var trigger = UserTrigger(name: name, table: table, number: number)
        guard let text = TriggerText(sql) else {
            trigger.problem = "has SQL that Martlet can't read"
            return trigger
        }
        let copy = text.copy(named: "\(Self.prefix)\(number)", when: "\(Self.gate)(\(number))")
        let found = try compile(copy, named: "\(Self.prefix)\(number)", on: table, event: text.event)
        if let error = found.error {
            trigger.problem = "can't run for remote changes: \(error)"
            return trigger
        }
        let written = found.written.filter { !$0.hasPrefix("sqlite_") }
        trigger.tracked = written.filter(tracked.contains).sorted()
        trigger.untracked = written.filter { !tracked.contains($0) }.sorted()
        trigger.counted = found.counted.filter { tracked.contains($0.table) && $0.table != table.lowercased() }
            .map { "\($0.table).\($0.column)" }.sorted()
        guard trigger.tracked.isEmpty, !trigger.untracked.isEmpty else { return trigger }
        trigger.problem = problem(text, tableSQL, trigger.untracked)
        trigger.isOfDecidingTable = !Self.conflictPolicies(tableSQL).isEmpty
        if trigger.problem == nil { trigger.copy = copy }
        return trigger
    }

    /// Returns why a copy would not do the same as the trigger. Nil if it would.
    private func problem(_ text: TriggerText, _ table: String, _ targets: [String]) -> String? {
        if text.mayRefuse { return "may refuse a row (RAISE), but remote changes must not be refused" }
        let policies = targets.reduce(into: text.conflictPolicies) {
            $0.formUnion(Self.conflictPolicies(tables[$1] ?? ""))
        }
        if !policies.isDisjoint(with: ["ROLLBACK", "FAIL"]) {
            return "may end the transaction or a part of it when a conflict occurs (ROLLBACK, FAIL)"
        }
        // A statement's conflict clause also applies to the statements of its triggers. Without one, the table's own ON
        // CONFLICT would apply, which must not decide a merge.
        if !Self.conflictPolicies(table).isEmpty, !policies.isEmpty {
            return "has an ON CONFLICT clause, and so does its table"
        }
        return nil
    }

    /// Returns the conflict policies in a table's SQL, other than SQLite's default.
    static func conflictPolicies(_ sql: String) -> Set<String> {
        let words = SQLReader(sql).tokens
        let policies = zip(words, words.dropFirst()).compactMap { first, second in
            first.isWord("CONFLICT") ? second.name?.uppercased() : nil
        }
        return Set(policies).subtracting(["ABORT"])
    }

    // MARK: Compiling

    private struct Column: Hashable {
        var table: String
        var column: String
    }

    private struct Findings {
        var written: Set<String> = []
        /// Columns that are both read and set.
        var counted: Set<Column> = []
        var error: String?
    }

    /// The accesses that SQLite asks the authorizer about while it compiles.
    private final class Requests {
        let trigger: String
        var written: Set<String> = []
        var set: Set<Column> = []
        var read: Set<Column> = []

        init(trigger: String) { self.trigger = trigger }
    }

    private func compile(
        _ copy: String, named name: String, on table: String, event: String
    ) throws -> Findings {
        var findings = Findings()
        do {
            try db.execute(sql: copy)
        } catch let error as DatabaseError {
            findings.error = error.message ?? "\(error)"
            return findings
        }
        defer { try? db.execute(sql: "DROP TRIGGER temp.\(name.quotedName)") }
        let requests = Requests(trigger: name)
        sqlite3_set_authorizer(handle, Self.note, Unmanaged.passUnretained(requests).toOpaque())
        defer { sqlite3_set_authorizer(handle, nil, nil) }
        var compiled: OpaquePointer?
        let code = sqlite3_prepare_v2(handle, try statement(event, on: table), -1, &compiled, nil)
        if code != SQLITE_OK { findings.error = String(cString: sqlite3_errmsg(handle)) }
        sqlite3_finalize(compiled)
        findings.written = requests.written
        findings.counted = requests.set.intersection(requests.read)
        return findings
    }

    /// Returns a statement for which the trigger runs.
    private func statement(_ event: String, on table: String) throws -> String {
        let name = "main.\(table.quotedName)"
        switch event {
        case "INSERT": return "INSERT INTO \(name) DEFAULT VALUES"
        case "DELETE": return "DELETE FROM \(name)"
        default:
            let columns = try String.fetchAll(
                db, sql: "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE hidden = 0", arguments: [table])
            return "UPDATE \(name) SET " + columns.map { "\($0.quotedName) = \($0.quotedName)" }.joined(separator: ", ")
        }
    }

    private static let note:
        @convention(c) (
            UnsafeMutableRawPointer?, CInt, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
            UnsafePointer<CChar>?
        ) -> CInt = { box, action, first, second, _, trigger in
            guard let box, let first, let trigger else { return SQLITE_OK }
            let requests = Unmanaged<Requests>.fromOpaque(box).takeUnretainedValue()
            guard String(cString: trigger) == requests.trigger else { return SQLITE_OK }
            let table = String(cString: first).lowercased()
            let column = Column(table: table, column: second.map { String(cString: $0).lowercased() } ?? "")
            switch action {
            case SQLITE_INSERT, SQLITE_DELETE: requests.written.insert(table)
            case SQLITE_UPDATE:
                requests.written.insert(table)
                requests.set.insert(column)
            case SQLITE_READ: requests.read.insert(column)
            default: break
            }
            return SQLITE_OK
        }
}
