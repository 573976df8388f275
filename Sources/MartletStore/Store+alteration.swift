package import GRDB

/// A change of the schema, and of rows along with it, in one transaction of the file.
///
/// Parts of it may be sealed as transactions of the history while it runs: they are committed with the rest, or not at
/// all. Confined to the body that it is handed to.
package struct Alteration {
    package let database: Database

    /// Makes catalog and triggers follow what was done to the schema. Whoever renames a column does this before
    /// anything else happens to its table: the trigger knows which column it was.
    package func follow() throws {
        try SchemaFollower.followTables(database, .init(givesUpMissing: false, resumes: false, audits: false))
    }

    /// Runs `body` without the triggers that capture: for work that every node does for itself, and that keeps the rows
    /// which a table has.
    ///
    /// - Parameter body: returns the tables whose rows it has written.
    package func withoutCapture(_ body: () throws -> Set<String>) throws {
        try follow()
        try SchemaFollower.dropTriggers(database)
        let tables = try body()
        try follow()
        for entity in try Catalog.load(database).entities where tables.contains(entity.name) {
            try RowPrints.adopt(database, entity)
        }
    }

    /// Makes a transaction of the history of what was changed since the last one.
    ///
    /// - Returns: its number, or nil where nothing was changed.
    package func seal(author: String?, context: String?) throws -> Int64? {
        try Sealer.seal(
            database, mark: SealMark(author: author, context: context, process: Store.processName))
    }

    /// As ``Store/attach(_:)``.
    package func attach(_ request: AttachRequest) throws { _ = try Attachment.run(database, request) }
}

extension Store {
    /// Runs `body` in one immediate transaction, in which it may change the schema. Foreign keys are neither enforced
    /// nor acted upon while it runs, so that a table may be made anew without its children going with it, and are
    /// checked at the end.
    ///
    /// - Parameter context: what the history says of changes that the body didn't seal itself.
    /// - Throws: what `body` threw, or ``/MartletCore/StoreError``; nothing is changed then.
    package func alter<T>(context: String, _ body: (Alteration) throws -> T) throws -> T {
        let mark = SealMark(context: context, process: Self.processName)
        return try write(sealing: mark, enforcesForeignKeys: false, sealsParts: true) { db in
            let before = try SchemaScript.violationCount(db)
            let result = try body(Alteration(database: db))
            try SchemaScript.checkViolations(db, since: before)
            return result
        }
    }
}
