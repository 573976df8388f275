package import GRDB

/// How a store's file uses its space.
package struct FileSpace: Sendable, Equatable {
    package var pageBytes: Int64
    package var pageCount: Int64
    /// Pages without content. SQLite uses them before it extends the file.
    package var freePageCount: Int64
    /// Whether the agent can give free pages back to the file system: the file was created with incremental
    /// auto-vacuum.
    package var isShrinkable: Bool

    package var bytes: Int64 { pageCount * pageBytes }
    package var freeBytes: Int64 { freePageCount * pageBytes }
    package var usedBytes: Int64 { bytes - freeBytes }

    package init(pageBytes: Int64, pageCount: Int64, freePageCount: Int64, isShrinkable: Bool = false) {
        self.pageBytes = pageBytes
        self.pageCount = pageCount
        self.freePageCount = freePageCount
        self.isShrinkable = isShrinkable
    }

    /// Costs nothing: SQLite keeps these numbers in the file's header.
    package static func read(_ db: Database) throws -> FileSpace {
        func value(_ name: String) throws -> Int64 { try Int64.fetchOne(db, sql: "PRAGMA main.\(name)") ?? 0 }
        return FileSpace(
            pageBytes: try value("page_size"), pageCount: try value("page_count"),
            freePageCount: try value("freelist_count"), isShrinkable: try value("auto_vacuum") == incremental)
    }

    /// SQLite's number of that mode.
    private static let incremental: Int64 = 2

    /// Lets a file that has no page yet give free pages back later. In any other file, this does nothing: only `VACUUM`
    /// changes the mode.
    static func makeShrinkable(_ db: Database) throws {
        guard try read(db).pageCount == 0 else { return }
        try db.execute(sql: "PRAGMA main.auto_vacuum = \(incremental)")
    }

    /// Moves pages from the end of the file into free ones, and cuts them off, in the caller's transaction. The file
    /// itself becomes smaller with the next complete checkpoint. No row gets another rowid.
    ///
    /// - Returns: How many free pages are gone. At most that many pages are moved.
    package static func giveBack(_ db: Database, atMost count: Int64) throws -> Int64 {
        let before = try read(db)
        guard count > 0, before.isShrinkable else { return 0 }
        try db.execute(sql: "PRAGMA main.incremental_vacuum(\(count))")
        return before.freePageCount - (try read(db).freePageCount)
    }
}

extension Store {
    package func fileSpace() throws -> FileSpace { try read { try FileSpace.read($0) } }
}
