public import Foundation
import GRDB

/// What `attach` is asked to do.
public struct AttachRequest: Sendable {
    /// The tables to track. Empty (the default): every table that a user made.
    public var tables: [String] = []
    /// Columns that identify the rows of a table, by table, instead of the rule that Martlet would take. No columns:
    /// Martlet assigns IDs, or the primary key is the identity, as without an entry.
    ///
    /// Of a table that is tracked already, an entry changes what names the rows that are inserted from now on. Rows
    /// that are there keep the IDs that they have, and other nodes may change, or not, at any time.
    public var identities: [String: [String]] = [:]
    /// Names of a table that other nodes use, or used, by table. Renamings by `ALTER TABLE` are followed without this;
    /// it is for stores that began with the new name.
    public var formerNames: [String: [String]] = [:]
    /// Names of columns that other nodes use, or used, by table and column, as ``formerNames``.
    public var formerColumnNames: [String: [String: [String]]] = [:]
    /// Copies of one database that are attached with the same seed agree on the IDs that Martlet assigns to their rows.
    /// By default each attach assigns its own.
    public var seed: UUID?
    /// Keeps the values from before an update or a delete too. Off by default; on for a table that is tracked already
    /// only where the request names it, and never off again.
    public var keepsOldValues = false
    /// Which row keeps a unique key that two claim, by table. `keepNewest` by default. The same on all nodes, or they
    /// differ. Of a table that is tracked already, it holds for what comes from now on.
    public var uniquePolicies: [String: UniquePolicy] = [:]
    /// Puts the rows that are there already into the history, as inserts, so that they are published. Off by default:
    /// copies of one database have them all.
    public var logsExistingRows = false
    /// Of tables that are tracked already: puts the rows into the history, as inserts, that nobody was ever told of,
    /// since they were there when the table was attached. Off by default. Asked for again, it finds none.
    public var logsUntoldRows = false

    public init() {}
}

/// What `attach` did with each table.
public struct AttachReport: Sendable {
    public struct Refusal: Sendable {
        public var table: String
        public var error: StoreError
    }

    /// The tables that are tracked from now on.
    public var attached: [Entity] = []
    /// The tables that were tracked before, and of which nothing changed.
    public var alreadyTracked: [String] = []
    /// The tables that were tracked before, and have another identity, further former names or another unique policy
    /// from now on, or keep old values.
    public var changed: [String] = []
    public var refused: [Refusal] = []
    /// Things to know about tables that are tracked.
    public var warnings: [String] = []
    /// How many rows were there already.
    public var existingRowCount = 0
    /// How many rows of tables that were tracked before were put into the history (``AttachRequest/logsUntoldRows``).
    public var untoldRowCount = 0
}

extension Store {
    /// Begins to track tables: from the commit of this call on, every change of theirs is in the history.
    ///
    /// One transaction: no write of another program falls between. Tables that can't be tracked are reported with the
    /// reason and a remedy, and don't stop the others, unless the request names them.
    /// - Throws: ``/MartletCore/StoreError`` with code `.notTrackable` or `.invalidArgument` for a table that the
    ///   request names, also where its identity can't be changed: one without an integer key, or whose integer key is
    ///   the identity.
    public func attach(_ request: AttachRequest = .init()) throws -> AttachReport {
        try warning(write(author: nil, context: "attach") { try Attachment.run($0, request) })
    }

    /// As ``attach(_:)``, for large tables.
    ///
    /// - Parameter progress: is told from time to time how far it is with the rows that are there. Called on the
    ///   caller's thread, inside the transaction: it can't use the store.
    public func attach(
        _ request: AttachRequest, progress: @escaping @Sendable (AttachProgress) -> Void
    ) throws -> AttachReport {
        try warning(write(author: nil, context: "attach") { try Attachment.run($0, request, progress: progress) })
    }

    /// The report with what is to be known of triggers of the user's, of references that no table declares, and of
    /// rules that read numbers of rows.
    private func warning(_ report: AttachReport) throws -> AttachReport {
        var report = report
        report.warnings += try undeclaredReferences().map(\.warning) + numberedRules().map(\.warning)
        report.warnings += try noteworthyTriggers().compactMap(\.warning)
        return report
    }
}

extension Store {
    package func undeclaredReferences() throws -> [UndeclaredReference] {
        let entities = try trackedEntities()
        return try UndeclaredReference.all(entities) + read { try UndeclaredReference.untracked($0, entities) }
    }

    package func numberedRules() throws -> [NumberedRule] {
        let entities = try trackedEntities()
        return try read { try NumberedRule.all($0, entities) }
    }

    /// The tables that are tracked, in the order in which they were attached.
    public func trackedEntities() throws -> [Entity] {
        try read { try Catalog.load($0).entities }
    }

    /// The tables that were tracked until they were dropped or lost their identity. One that comes back under its name
    /// is tracked again.
    public func lostEntities() throws -> [LostEntity] {
        try read(LostEntity.all)
    }
}
