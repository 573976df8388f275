/// What the audit found.
public struct AuditReport: Sendable, Equatable {
    /// Rows that were gone without a trace in the history, by table: they are logged as deleted now.
    public var vanished: [String: Int] = [:]
    /// Rows that were there without a trace in the history, by table: they are logged as inserted now.
    public var appeared: [String: Int] = [:]

    /// Rows whose values had changed while their table had no triggers, by table: what changed of them is logged now.
    public var changed: [String: Int] = [:]

    public var isClean: Bool { vanished.isEmpty && appeared.isEmpty && changed.isEmpty }

    public init() {}

    package mutating func add(_ other: AuditReport) {
        vanished.merge(other.vanished, uniquingKeysWith: +)
        appeared.merge(other.appeared, uniquingKeysWith: +)
        changed.merge(other.changed, uniquingKeysWith: +)
    }
}

/// How far an audit has come.
public struct AuditProgress: Sendable, Equatable {
    public var table: String
    /// Rows of the table that were compared.
    public var rows: Int
}

extension Store {
    /// Looks for rows that vanished or appeared without a trigger having run (a program that switched triggers off),
    /// and puts them into the history.
    ///
    /// Reads every tracked row once.
    public func audit() throws -> AuditReport {
        try write(author: nil, context: "audit") { try Audit.run($0) }
    }

    /// Runs a user's DDL with capture kept whole: triggers are taken away and made anew in the same transaction.
    ///
    /// The script is one transaction: its own `BEGIN` and `COMMIT` are passed over. Foreign keys are not enforced while
    /// it runs, so that a table may be made anew without its children going with it, and are checked at the end.
    /// - Throws: ``/MartletCore/StoreError`` when a statement fails; nothing of the script is kept then.
    public func alter(sql: String) throws {
        _ = try runScript(sql, nil)
    }

    /// The same, and then does what ``attach(_:)`` does, in the same transaction: for a script that makes tables, or
    /// after which other columns name the rows of one.
    ///
    /// - Throws: as ``alter(sql:)`` and ``attach(_:)``. Nothing is kept then.
    @discardableResult
    public func alter(sql: String, attaching request: AttachRequest) throws -> AttachReport {
        try runScript(sql, request)
    }

    private func runScript(_ sql: String, _ request: AttachRequest?) throws -> AttachReport {
        let mark = SealMark(context: "alter", process: Self.processName)
        return try write(sealing: mark, enforcesForeignKeys: false) {
            try SchemaScript.run($0, sql, attaching: request)
        }
    }
}
