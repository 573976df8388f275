public import Foundation

/// The authors of transactions that Martlet itself applies.
public enum TransactionAuthor {
    /// The author of transactions applied from other nodes.
    public static let sync = "martlet.sync"
    /// The author of transactions that this node ingested from another system.
    public static let ingest = "martlet.ingest"

    /// Returns what is wrong with an author that a program has chosen. Nil if nothing is.
    static func problem(_ author: String?) -> String? {
        guard let author, author == sync || author == ingest else { return nil }
        return "\(author) is the author of changes that Martlet applies; they would not count as changes of this node"
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if Martlet itself uses the author.
    static func check(_ author: String?) throws {
        guard let problem = problem(author) else { return }
        throw StoreError(.invalidArgument, "\(problem).", hint: "Use another author.")
    }
}

/// One transaction of the history.
///
/// Adjacent transactions of other programs may be joined into one. A transaction is never split.
public struct HistoryTransaction: Sendable, Equatable {
    /// The ID, which increases with every transaction of the store.
    public var id: Int64
    public var token: HistoryToken
    /// The author of the changes. Nil for programs that don't use Martlet.
    public var author: String?
    public var context: String?
    /// The name and ID of the process. Nil for programs that don't use Martlet.
    public var process: String?
    /// The time of the last change, by this machine's clock at that time.
    public var timestamp: Date
    /// The origin of a transaction that was applied from another node. Nil for local transactions.
    public var origin: HistoryOrigin?
    public var changes: [HistoryChange]
}

extension HistoryTransaction {
    /// About how much memory the changes take.
    var approximateBytes: Int {
        changes.reduce(200) { sum, change in
            [change.values, change.oldValues, change.tombstone].reduce(sum + 200) { sum, values in
                values.reduce(sum) { $0 + $1.key.utf8.count + $1.value.approximateBytes }
            }
        }
    }
}

extension Value {
    fileprivate var approximateBytes: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .blob(let bytes), .rawText(let bytes): bytes.count
        case .null, .integer, .real: 8
        case .reference: 50
        }
    }
}

/// The origin of an applied transaction.
public struct HistoryOrigin: Sendable, Equatable {
    public var node: UUID
    public var name: String?
    public var sequence: Int64
    public var author: String?
    public var timestamp: Date
}

/// A change of one row.
public struct HistoryChange: Sendable, Equatable {
    /// The ID, which increases with every change of the store.
    public var id: Int64
    /// The table's name today.
    public var entity: String
    public var kind: ChangeKind
    /// The row's stable ID. Nil only if the stable ID can't be determined, for example because a reference in it can't
    /// be resolved.
    public var identity: StableID?
    /// The integer primary key in this file, if the table has one.
    public var row: Int64?
    /// The new values: all columns on insert, the changed ones on update, none on delete.
    public var values: [String: Value]
    /// The values from before the change, if the table was attached to keep them, and the identity if it changed.
    public var oldValues: [String: Value]
    /// On delete, the preserved values: the identity, or all values if old values are kept.
    public var tombstone: [String: Value]
    /// The time of the change, by the clock of the machine that made it.
    public var timestamp: Date
}
