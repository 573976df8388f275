import Foundation
package import GRDB

/// What is written on the row of the log that seals a transaction.
package struct SealMark: Sendable {
    package var author: String?
    package var context: String?
    package var process: String?
    package var origin: SealOrigin?

    package init(author: String? = nil, context: String? = nil, process: String? = nil, origin: SealOrigin? = nil) {
        self.author = author
        self.context = context
        self.process = process
        self.origin = origin
    }

    static func foreign(author: String?) -> SealMark { SealMark(author: author) }
}

/// Where an applied transaction came from.
package struct SealOrigin: Sendable {
    package var node: [UInt8]
    package var sequence: Int64
    package var author: String?
    package var timestamp: Int64
    package var name: String?

    package init(node: [UInt8], sequence: Int64, author: String?, timestamp: Int64, name: String?) {
        self.node = node
        self.sequence = sequence
        self.author = author
        self.timestamp = timestamp
        self.name = name
    }
}

/// Closes the changes that follow the last transaction mark into a transaction of their own.
///
/// Everything after the last mark in the log is unsealed, and always of whole committed transactions: a connection seals
/// in the transaction in which it writes, or under the write lock.
package enum Sealer {
    static func hasUnsealed(_ db: Database) throws -> Bool {
        let last = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT e FROM \(InternalName.log) ORDER BY id DESC LIMIT 1"))
        return (last ?? 0) != 0
    }

    /// Seals what is unsealed. O(1) in the history, and linear in what is sealed.
    ///
    /// - Returns: the transaction's id, or nil where nothing was unsealed.
    @discardableResult
    package static func seal(_ db: Database, mark: SealMark) throws -> Int64? {
        let last = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT id, e, t FROM \(InternalName.log) ORDER BY id DESC LIMIT 1"))
        guard let last, (last["e"] as Int64) != 0 else { return nil }
        let previous = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 ORDER BY id DESC LIMIT 1"))
        // The time is that of the last change: what is sealed late does not look younger than it is.
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO \(InternalName.log)(e, r, k, t, c1, c2, c3, c4, c5, c6, c7, c8)
                VALUES (0, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        try insert.execute(arguments: [
            (previous ?? 0) + 1, last["t"] as Int64, mark.author, mark.context, mark.process,
            mark.origin.map { Data($0.node) }, mark.origin?.sequence, mark.origin?.author, mark.origin?.timestamp,
            mark.origin?.name,
        ])
        return db.lastInsertedRowID
    }
}
