/// The findings of an audit.
public struct AuditReport: Sendable, Equatable {
    /// The number of rows that had disappeared without a change in the history, by table. They are now logged as
    /// deleted.
    public var vanished: [String: Int] = [:]
    /// The number of rows that had appeared without a change in the history, by table. They are now logged as inserted.
    public var appeared: [String: Int] = [:]

    /// The number of rows whose values had changed while their table had no triggers, by table. Their changed values
    /// are now logged.
    public var changed: [String: Int] = [:]

    public var isClean: Bool { vanished.isEmpty && appeared.isEmpty && changed.isEmpty }

    public init() {}

    package mutating func add(_ other: AuditReport) {
        vanished.merge(other.vanished, uniquingKeysWith: +)
        appeared.merge(other.appeared, uniquingKeysWith: +)
        changed.merge(other.changed, uniquingKeysWith: +)
    }
}

/// The progress of an audit.
public struct AuditProgress: Sendable, Equatable {
    public var table: String
    /// The number of rows of the table compared so far.
    public var rows: Int
}

extension Store {
    /// Looks for rows that disappeared or appeared without a trigger having run (because a program switched triggers
    /// off), and logs them.
    ///
    /// Reads every tracked row once.
    public func audit() throws -> AuditReport {
        try write(author: nil, context: "audit") { try Audit.run($0) }
    }

    /// Runs a user's DDL without losing changes: the triggers are dropped and created again in the same transaction.
    ///
    /// The whole script is one transaction; its own `BEGIN` and `COMMIT` are ignored. Foreign keys are not enforced
    /// while it runs, so that a table can be rebuilt without deleting the rows that refer to it. They are checked at
    /// the end.
    /// - Throws: ``/MartletCore/StoreError`` if a statement fails. Then nothing of the script is kept.
    public func alter(sql: String) throws {
        _ = try runScript(sql, nil)
    }

    /// Runs a script in the same way, and then attaches tables as ``attach(_:)`` does, in the same transaction. For a
    /// script that creates tables, or that changes which columns identify the rows of a table.
    ///
    /// - Throws: The errors of ``alter(sql:)`` and ``attach(_:)``. Then nothing is kept.
    @discardableResult
    public func alter(sql: String, attaching request: AttachRequest) throws -> AttachReport {
        try runScript(sql, request)
    }

    private func runScript(_ sql: String, _ request: AttachRequest?) throws -> AttachReport {
        let mark = TransactionMark(context: "alter", process: Self.processName)
        return try write(closingWith: mark, enforcesForeignKeys: false) {
            try SchemaScript.run($0, sql, attaching: request)
        }
    }
}
