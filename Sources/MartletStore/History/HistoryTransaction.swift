public import Foundation

/// The author of transactions that were applied from other nodes.
public enum TransactionAuthor {
    public static let sync = "martlet.sync"
}

/// What was committed in one transaction.
///
/// Transactions of other programs that nobody saw between may be joined into one; a transaction is never split.
public struct HistoryTransaction: Sendable, Equatable {
    /// Ascends with every transaction of the store.
    public var id: Int64
    public var token: HistoryToken
    /// Who made the changes. Absent for programs that know nothing of authors.
    public var author: String?
    public var context: String?
    /// Name and number of the process. Absent for programs that know nothing of Martlet.
    public var process: String?
    /// When the last of the changes was made, by this machine's clock at that time.
    public var timestamp: Date
    /// Where the transaction came from, when it was applied from another node.
    public var origin: HistoryOrigin?
    public var changes: [HistoryChange]
}

/// Where an applied transaction was made.
public struct HistoryOrigin: Sendable, Equatable {
    public var node: UUID
    public var name: String?
    public var sequence: Int64
    public var author: String?
    public var timestamp: Date
}

/// What happened to one row.
public struct HistoryChange: Sendable, Equatable {
    /// Ascends with every change of the store.
    public var id: Int64
    /// The table's name today.
    public var entity: String
    public var kind: ChangeKind
    /// The row's stable ID. Absent only where a reference in it can't be resolved.
    public var identity: StableID?
    /// The integer primary key in this file, where the table has one.
    public var row: Int64?
    /// The new values: all columns on insert, the changed ones on update, none on delete.
    public var values: [String: Value]
    /// The values from before, where the table was attached to keep them, and the identity where it changed.
    public var oldValues: [String: Value]
    /// On delete, what was preserved of the row: the identity, or everything where old values are kept.
    public var tombstone: [String: Value]
    /// When the change was made, by the clock of the machine that made it.
    public var timestamp: Date
}
