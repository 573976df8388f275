public import Foundation
import GRDB

/// The options of `attach`.
public struct AttachRequest: Sendable {
    /// The tables to track. Empty, the default, means every user table.
    public var tables: [String] = []
    /// The columns that identify the rows of a table, by table, instead of Martlet's own choice. An empty list means
    /// the same as no entry: Martlet assigns IDs, or the primary key is the identity.
    ///
    /// For a table that is tracked already, an entry changes the identity of rows inserted from now on. Existing rows
    /// keep their IDs. Other nodes may make the same change at any time, or not at all.
    public var identities: [String: [String]] = [:]
    /// Names that other nodes use, or used, for a table, by table. Martlet follows `ALTER TABLE … RENAME` without this;
    /// it is for stores that began with the new name.
    public var formerNames: [String: [String]] = [:]
    /// Names that other nodes use, or used, for columns, by table and column. See ``formerNames``.
    public var formerColumnNames: [String: [String: [String]]] = [:]
    /// The seed of the IDs that Martlet assigns to existing rows. Copies of one database that are attached with the
    /// same seed agree on these IDs. By default each attach assigns its own.
    public var seed: UUID?
    /// Whether the history also keeps the values from before an update or a delete. Off by default. For a table that is
    /// tracked already, it is switched on only if the request names the table, and it is never switched off again.
    public var keepsOldValues = false
    /// Which row keeps a unique key that two rows claim, by table. The default is `keepNewest`. Use the same policy on
    /// all nodes, or they won't converge. For a table that is tracked already, it applies to changes from now on.
    public var uniquePolicies: [String: UniquePolicy] = [:]
    /// Whether to log the existing rows as inserts, so that they are published. Off by default, because copies of one
    /// database already have them all.
    public var logsExistingRows = false
    /// Whether to log, as inserts, the unpublished rows of tables that are tracked already: rows that existed when the
    /// table was attached. Off by default. A second request finds none.
    public var logsUnpublishedRows = false
    @available(*, deprecated, renamed: "logsUnpublishedRows")
    public var logsUntoldRows: Bool {
        get { logsUnpublishedRows }
        set { logsUnpublishedRows = newValue }
    }

    public init() {}
}

/// The result of `attach` for each table.
public struct AttachReport: Sendable {
    public struct Refusal: Sendable {
        public var table: String
        public var error: StoreError
    }

    /// The tables that this call began to track.
    public var attached: [Entity] = []
    /// The tables that were tracked before, and that this call didn't change.
    public var alreadyTracked: [String] = []
    /// The tables that were tracked before, and whose identity, former names, unique policy or keeping of old values
    /// this call changed.
    public var changed: [String] = []
    public var refused: [Refusal] = []
    /// Warnings about tracked tables.
    public var warnings: [String] = []
    /// The number of rows that already existed.
    public var existingRowCount = 0
    /// The number of rows of previously tracked tables that were logged (``AttachRequest/logsUnpublishedRows``).
    public var unpublishedRowCount = 0
    @available(*, deprecated, renamed: "unpublishedRowCount")
    public var untoldRowCount: Int {
        get { unpublishedRowCount }
        set { unpublishedRowCount = newValue }
    }
}

extension Store {
    /// Begins to track tables. From the commit of this call on, the history has every change to them.
    ///
    /// Runs in one transaction, so no other program can write in between. A table that can't be tracked is reported
    /// with the reason and a remedy. It doesn't stop the others, unless the request names it.
    /// - Throws: ``/MartletCore/StoreError`` with code `.notTrackable` or `.invalidArgument` for a table that the
    ///   request names. Also if its identity can't be changed, because it has no integer key or because the integer key
    ///   is the identity.
    public func attach(_ request: AttachRequest = .init()) throws -> AttachReport {
        try warning(write(author: nil, context: "attach") { try Attachment.run($0, request) })
    }

    /// Does the same as ``attach(_:)``, and reports progress, for large tables.
    ///
    /// - Parameter progress: Called from time to time with the number of existing rows processed so far. It runs on the
    ///   caller's thread, inside the transaction, and can't use the store.
    public func attach(
        _ request: AttachRequest, progress: @escaping @Sendable (AttachProgress) -> Void
    ) throws -> AttachReport {
        try warning(write(author: nil, context: "attach") { try Attachment.run($0, request, progress: progress) })
    }

    /// Adds warnings about user triggers, about references that no table declares, and about rules that read row
    /// numbers.
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

    /// Returns the tracked tables, in the order in which they were attached.
    public func trackedEntities() throws -> [Entity] {
        try read { try Catalog.load($0).entities }
    }

    /// Returns the tables that were tracked until they were dropped or lost their identity. If a table with such a name
    /// is created again, Martlet tracks it again.
    public func lostEntities() throws -> [LostEntity] {
        try read(LostEntity.all)
    }
}
