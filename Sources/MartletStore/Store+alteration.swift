package import GRDB

/// A change to the schema, together with changes to rows, in one SQLite transaction.
///
/// Parts of it may be closed as history transactions while it runs; they are committed with the rest, or not at all.
/// Valid only inside the closure that receives it.
package struct Alteration {
    package let database: Database

    /// Brings the catalog and the triggers up to date with the schema. After renaming a column, call this before
    /// anything else happens to its table: the trigger knows which column was renamed.
    package func follow() throws {
        try SchemaFollower.followTables(database, .init(givesUpMissing: false, resumes: false, audits: false))
    }

    /// Runs `body` without the capture triggers. For work that every node does for itself, and that keeps the rows of a
    /// table.
    ///
    /// - Parameter body: Returns the names of the tables whose rows it has written.
    package func withoutCapture(_ body: () throws -> Set<String>) throws {
        try follow()
        try SchemaFollower.dropTriggers(database)
        let tables = try body()
        try follow()
        for entity in try Catalog.load(database).entities where tables.contains(entity.name) {
            try RowHashes.adopt(database, entity)
        }
    }

    /// Closes a history transaction of the changes made since the last one.
    ///
    /// - Returns: The ID of the transaction, or nil if nothing was changed.
    package func closeTransaction(author: String?, context: String?) throws -> Int64? {
        try TransactionAuthor.check(author)
        return try TransactionCloser.close(
            database, mark: TransactionMark(author: author, context: context, process: Store.processName))
    }

    /// Returns whether the table was tracked until SQLite alone could no longer write to it: it needs a function or a
    /// collation that only another program has. It is tracked again once it doesn't.
    package func isUnwritable(_ table: String) throws -> Bool {
        let isLost = try Bool.fetchOne(
            database,
            sql: "SELECT EXISTS (SELECT 1 FROM \(InternalName.entities) WHERE state = 'lost' AND name = ?)",
            arguments: [table])
        return try isLost == true && TableProbe.missingPart(database, of: table) != nil
    }

    /// Does the same as ``Store/attach(_:)``.
    package func attach(_ request: AttachRequest) throws { _ = try Attachment.run(database, request) }
}

extension Store {
    /// Runs `body` in one immediate transaction, in which it may change the schema. Foreign keys are neither enforced
    /// nor acted upon while it runs, so that a table can be rebuilt without deleting the rows that refer to it. They
    /// are checked at the end.
    ///
    /// - Parameter context: The context of the history transaction for changes that the body didn't close itself.
    /// - Throws: The error that `body` threw, or ``/MartletCore/StoreError``. Then nothing is changed.
    package func alter<T>(context: String, _ body: (Alteration) throws -> T) throws -> T {
        let mark = TransactionMark(context: context, process: Self.processName)
        return try write(closingWith: mark, enforcesForeignKeys: false, closesParts: true) { db in
            let before = try SchemaScript.violationCount(db)
            let result = try body(Alteration(database: db))
            try SchemaScript.checkViolations(db, since: before)
            return result
        }
    }
}
