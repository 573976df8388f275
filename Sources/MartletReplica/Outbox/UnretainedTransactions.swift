public import Foundation
package import GRDB
import MartletStore

/// Transactions of this node that the topic does not retain: the node has published them several times, and each time
/// the topic dropped some before all of them had been read back.
public struct UnretainedTransactions: Sendable, Equatable {
    public var sequences: ClosedRange<Int64>
    /// Size of their messages.
    public var bytes: Int64
    /// When the node gave up.
    public var since: Date
    /// True once this node has made a snapshot that includes them.
    public var isInSnapshot: Bool
}

@available(*, deprecated, renamed: "UnretainedTransactions")
public typealias UnkeptTransactions = UnretainedTransactions

/// The table of these transactions. They are not published again until the topic changes.
package enum UnretainedRanges {
    package static func load(_ db: Database) throws -> [UnretainedTransactions] {
        try Row.fetchAll(db, sql: "SELECT * FROM _martlet_unkept ORDER BY first").map { row in
            UnretainedTransactions(
                sequences: (row["first"] as Int64)...(row["last"] as Int64), bytes: row["bytes"],
                since: Date(milliseconds: row["since"]), isInSnapshot: row["covered"])
        }
    }

    /// Returns those that no snapshot of this node includes. None if the store has the format of an older version.
    package static func loadUncovered(_ db: Database) throws -> [UnretainedTransactions] {
        guard try db.hasTable("_martlet_unkept") else { return [] }
        return try load(db).filter { !$0.isInSnapshot }
    }

    package static func add(_ db: Database, _ ranges: [ClosedRange<Int64>], at now: Int64) throws {
        for range in ranges {
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO _martlet_unkept(first, last, bytes, since)
                    SELECT ?1, ?2,
                      ifnull((SELECT sum(length(payload)) FROM _martlet_outbox WHERE sequence BETWEEN ?1 AND ?2), 0)
                      + ifnull((SELECT sum(length(bytes)) FROM _martlet_outbox_parts
                          WHERE sequence BETWEEN ?1 AND ?2), 0),
                      ?3
                    """, arguments: [range.lowerBound, range.upperBound, now])
        }
    }

    /// Condition for queries on the outbox.
    package static let isKept =
        "NOT EXISTS (SELECT 1 FROM _martlet_unkept AS u WHERE sequence BETWEEN u.first AND u.last)"

    /// Notes that a snapshot of this node has all of them.
    package static func noteInSnapshot(_ db: Database) throws {
        try db.execute(sql: "UPDATE _martlet_unkept SET covered = 1 WHERE covered = 0")
    }

    package static func forget(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM _martlet_unkept")
    }
}
