import MartletStore
public import MartletSync

/// Examines stores for `martlet verify`.
public enum StoreVerifier {
    /// The result of the examination of one store.
    public struct Examination: Sendable, Equatable {
        public var soundness: StoreSoundness
        /// The same for people, each with an instruction that fixes it.
        public var findings: [Finding]
    }

    /// Reads the whole file, and writes nothing. An agent may run on the store.
    ///
    /// - Throws: ``/MartletCore/StoreError`` when it can't be opened at all.
    public static func examine(_ path: String) throws -> Examination {
        let soundness = try StoreSoundness.examine(path)
        var findings: [Finding] = []
        func add(_ check: String, _ problem: String?, ok: String, level: Finding.Level = .problem, remedy: String) {
            findings.append(
                Finding(
                    check: check, level: problem == nil ? .ok : level, message: problem ?? ok,
                    remedy: problem == nil ? nil : remedy))
        }
        func list(_ counts: [String: Int]) -> String? {
            counts.isEmpty
                ? nil : counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        }
        add(
            "integrity", soundness.integrity == "ok" ? nil : soundness.integrity, ok: "SQLite finds no damage",
            remedy: "Restore the file with its -wal file, or start with a new one: it gets its rows from other nodes.")
        add(
            "foreign keys",
            soundness.foreignKeyViolationCount == 0
                ? nil : "\(soundness.foreignKeyViolationCount) rows refer to rows that don't exist",
            ok: "every reference has its target", remedy: "See PRAGMA foreign_key_check.")
        add(
            "vanished", list(soundness.vanished).map { "the history lacks the deletion of rows: \($0)" },
            ok: "the history has every deletion",
            remedy:
                "At its next start the agent treats them as deleted. To keep them, run --repair with another store "
                + "first."
        )
        add(
            "appeared", list(soundness.appeared).map { "the history lacks the insertion of rows: \($0)" },
            ok: "the history has every insertion", remedy: "At its next start the agent treats them as inserted.")
        add(
            "names", list(soundness.sameNames).map { "several rows share an ID: \($0)" }, ok: "each row has its own ID",
            remedy: "Restore the file from a backup, or start with a new one.")
        add(
            "clocks",
            list(soundness.badClocks).map { "clocks are from unknown nodes, or later than the store's own: \($0)" },
            ok: "all are from known nodes",
            remedy: "Run --repair with another store, or start the agents: their checks replace older values with "
                + "newer ones.")
        add(
            "checks",
            soundness.divergences.isEmpty
                ? nil : "\(soundness.divergences.count) rows and columns differed from other nodes",
            ok: "nothing was found", level: .warning, remedy: "They are listed below. --forget clears the list.")
        return Examination(soundness: soundness, findings: findings)
    }

    /// Repairs stores from each other: they exchange, with their stamps, rows that should be the same and are not.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on one of them, `.copied` if two
    ///   have the same node ID.
    public static func repair(_ paths: [String]) throws -> [RepairReport] {
        try withEngines(paths[...], []) { try SyncEngine.repair($0) }
    }

    @available(*, deprecated, renamed: "repair(_:)")
    public static func mend(_ paths: [String]) throws -> [RepairReport] { try repair(paths) }

    private static func withEngines<T>(
        _ paths: ArraySlice<String>, _ opened: [SyncEngine], _ body: ([SyncEngine]) throws -> T
    ) throws -> T {
        guard let path = paths.first else { return try body(opened) }
        return try StoreMaintenance.engine(
            path, AgentConfiguration(), instead: "Running agents compare stores by themselves: see check.interval."
        ) { try withEngines(paths.dropFirst(), opened + [$0], body) }
    }
}
