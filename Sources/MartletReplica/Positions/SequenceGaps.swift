package import GRDB
package import MartletStore

/// The sequences of an origin that have not arrived, although later ones have: the only code that writes
/// `_martlet_gaps`.
package enum SequenceGaps {
    package static func all(_ db: Database, node: Int64) throws -> [ClosedRange<Int64>] {
        try Row.fetchAll(
            db, sql: "SELECT first, last FROM _martlet_gaps WHERE node = ? ORDER BY first", arguments: [node]
        ).map { row in
            let (first, last) = (row["first"] as Int64, row["last"] as Int64)
            guard first <= last else {
                throw StoreError(
                    .corrupt, "The store has a gap of sequence numbers from \(first) to \(last).",
                    hint: "Restore the file from a backup.")
            }
            return first...last
        }
    }

    package static func replace(_ db: Database, node: Int64, _ gaps: [ClosedRange<Int64>]) throws {
        try db.execute(sql: "DELETE FROM _martlet_gaps WHERE node = ?", arguments: [node])
        for gap in gaps {
            try db.execute(
                sql: "INSERT INTO _martlet_gaps(node, first, last) VALUES (?, ?, ?)",
                arguments: [node, gap.lowerBound, gap.upperBound])
        }
    }

    /// Adds a gap.
    package static func add(_ db: Database, node: Int64, _ gap: ClosedRange<Int64>) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO _martlet_gaps(node, first, last) VALUES (?, ?, ?)",
            arguments: [node, gap.lowerBound, gap.upperBound])
    }

    package static func contains(
        _ db: Database, _ statement: StatementCache, node: Int64, _ sequence: Int64
    ) throws -> Bool {
        let find = try statement(
            db, "SELECT 1 FROM _martlet_gaps WHERE node = ?1 AND first <= ?2 AND last >= ?2")
        find.bind(1, node)
        find.bind(2, sequence)
        return try find.first { _ in true } ?? false
    }

    /// Returns true if any origin has a gap.
    package static func exist(_ db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM _martlet_gaps)") ?? false
    }

    /// Removes a sequence from the gap that contains it.
    ///
    /// - Returns: false if no gap contains it.
    package static func close(_ db: Database, node: Int64, _ sequence: Int64) throws -> Bool {
        guard
            let gap = try Row.fetchOne(
                db, sql: "SELECT first, last FROM _martlet_gaps WHERE node = ? AND first <= ? AND last >= ?",
                arguments: [node, sequence, sequence])
        else { return false }
        let first: Int64 = gap["first"]
        let last: Int64 = gap["last"]
        try db.execute(sql: "DELETE FROM _martlet_gaps WHERE node = ? AND first = ?", arguments: [node, first])
        for (from, to) in [(first, sequence - 1), (sequence + 1, last)] where from <= to {
            try db.execute(
                sql: "INSERT INTO _martlet_gaps(node, first, last) VALUES (?, ?, ?)", arguments: [node, from, to])
        }
        return true
    }
}
