import CMartletSQLite
import Foundation

/// Detects a write-ahead log that doesn't belong to the file beside it.
///
/// If you copy a backup over a store and leave the former `-wal` file there, SQLite takes some pages from the one and
/// some from the other: it checks checksums only within the log. Once a connection has closed, or 1,000 pages were
/// written, both are mixed for good. So this check runs before a writing connection is opened.
///
/// Not detected if the log was written to after the file was replaced, by a process that still had the former file
/// open.
package enum StaleLog {
    /// Checks the log of the store at the path. Costs two calls of `stat`, unless the file was changed after its log.
    /// That is the case after a checkpoint: then the log's pages are compared with those in the file. If they differ,
    /// SQLite's integrity check runs, which takes as long as reading the file.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` if the log belongs to another file. Both files stay
    ///   unchanged.
    package static func check(_ path: String) throws {
        let path = RealPath.of(path)
        let log = path + "-wal"
        guard isChanged(path, after: log), !isApplied(log, to: path), martlet_is_sound(path, 0) == 0,
            martlet_is_sound(path, 1) == 1
        else { return }
        throw StoreError(
            .corrupt,
            """
            \(path) is sound, but \(log) does not belong to it: that log is from another file, or from this file \
            before it was restored.
            """,
            hint: "Move \(log) and \(path)-shm to another folder, and try again. Nothing was changed.")
    }

    private static func isChanged(_ path: String, after log: String) -> Bool {
        var (file, wal) = (stat(), stat())
        // A log that consists only of its header has no pages.
        guard stat(log, &wal) == 0, wal.st_size > WriteAheadLog.headerSize, stat(path, &file) == 0 else { return false }
        return (file.st_ctim.tv_sec, file.st_ctim.tv_nsec) > (wal.st_mtim.tv_sec, wal.st_mtim.tv_nsec)
    }

    /// Returns whether the file already has everything that is committed in the log, so that the log changes nothing.
    package static func isApplied(_ logPath: String, to path: String) -> Bool {
        // Don't open the file directly: closing it would drop all locks that this process has on it.
        guard let log = try? WriteAheadLog(logPath), let file = martlet_file_open(path) else { return false }
        defer { martlet_file_close(file) }
        var page = [UInt8](repeating: 0, count: log.pageSize)
        return log.pages.allSatisfy { number, place in
            let offset = Int64(number - 1) * Int64(log.pageSize)
            return martlet_file_read(file, &page, Int32(page.count), offset) == SQLITE_OK
                && (try? log.page(at: place))?.elementsEqual(page) ?? false
        }
    }
}

/// The pages in a write-ahead log (https://sqlite.org/fileformat2.html#the_write_ahead_log).
package struct WriteAheadLog {
    static let headerSize = 32
    private static let frameHeaderSize = 24

    let pageSize: Int
    /// The offset in the log of the newest committed version of each page, by page number from 1.
    package private(set) var pages: [Int: UInt64] = [:]
    // Read, not mapped: another process may truncate the file.
    private let file: FileHandle

    /// Reads the log's index. An invalid log has no pages, as SQLite ignores it.
    ///
    /// - Throws: An error if the file can't be read.
    package init(_ path: String) throws {
        file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        let header = try file.read(upToCount: Self.headerSize) ?? Data()
        pageSize = header.count < Self.headerSize ? 0 : Self.number(header, 8)
        guard (512...65_536).contains(pageSize), Self.number(header, 0) | 1 == 0x377f_0683 else { return }
        var uncommitted: [Int: UInt64] = [:]
        var pageCount = 0
        // Frames of an earlier round have other salts.
        while let frame = try file.read(upToCount: Self.frameHeaderSize), frame.count == Self.frameHeaderSize,
            frame[8..<16] == header[16..<24]
        {
            let place = try file.offset()
            uncommitted[Self.number(frame, 0)] = place
            if Self.number(frame, 4) > 0 {
                pageCount = Self.number(frame, 4)
                pages.merge(uncommitted) { _, new in new }
                uncommitted = [:]
            }
            try file.seek(toOffset: place + UInt64(pageSize))
        }
        pages = pages.filter { $0.key <= pageCount }
    }

    func page(at place: UInt64) throws -> Data {
        try file.seek(toOffset: place)
        return try file.read(upToCount: pageSize) ?? Data()
    }

    private static func number(_ bytes: Data, _ offset: Int) -> Int {
        bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }
}
