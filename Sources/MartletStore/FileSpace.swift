package import GRDB

/// How a store's file uses its space.
package struct FileSpace: Sendable, Equatable {
    package var pageBytes: Int64
    package var pageCount: Int64
    /// Pages without content. SQLite uses them before it extends the file.
    package var freePageCount: Int64

    package var bytes: Int64 { pageCount * pageBytes }
    package var freeBytes: Int64 { freePageCount * pageBytes }
    package var usedBytes: Int64 { bytes - freeBytes }

    package init(pageBytes: Int64, pageCount: Int64, freePageCount: Int64) {
        self.pageBytes = pageBytes
        self.pageCount = pageCount
        self.freePageCount = freePageCount
    }

    /// Costs nothing: SQLite keeps these numbers in the file's header.
    package static func read(_ db: Database) throws -> FileSpace {
        func value(_ name: String) throws -> Int64 { try Int64.fetchOne(db, sql: "PRAGMA main.\(name)") ?? 0 }
        return FileSpace(
            pageBytes: try value("page_size"), pageCount: try value("page_count"),
            freePageCount: try value("freelist_count"))
    }
}

extension Store {
    package func fileSpace() throws -> FileSpace { try read { try FileSpace.read($0) } }
}
