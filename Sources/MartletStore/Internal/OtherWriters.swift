import Foundation
import Glibc

/// Finds out whether anybody besides the agent's own connection could be waiting for the write lock of a store: SQLite
/// doesn't say who waits, but it shows who has the file open.
package struct OtherWriters: Sendable {
    /// The byte of the shared-memory file on which each process with a connection holds a lock: `WAL_DMS` in SQLite's
    /// `os_unix.c`. A connection takes it before it can ask for the write lock.
    private static let openMark: off_t = 128

    private let path: String

    /// - Parameter path: The path of the database.
    package init(path: String) { self.path = path }

    /// Returns whether somebody else may write. Also true if that can't be found out.
    ///
    /// - Parameter own: How many writing connections of this process don't count.
    package func exist(besides own: Int) -> Bool {
        let path = RealPath.of(path)
        guard let descriptor = SharedMemoryFiles.descriptor(path + "-shm"), !Self.isOpenElsewhere(descriptor),
            let open = Self.writingDescriptors(of: path)
        else { return true }
        // Any library of this process may have opened the file, so the connections are counted by their descriptors:
        // each has one of its own. SQLite keeps those of some closed connections, which then count too.
        return open > own
    }

    /// Returns whether another process has a connection, through a descriptor of the shared-memory file.
    private static func isOpenElsewhere(_ descriptor: Int32) -> Bool {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = openMark
        lock.l_len = 1
        return fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type != Int16(F_UNLCK)
    }

    /// Returns how many descriptors this process has with which a file can be written. Nil if that can't be found out.
    private static func writingDescriptors(of path: String) -> Int? {
        var file = stat()
        guard stat(path, &file) == 0,
            let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        else { return nil }
        return names.count(where: { name in
            var other = stat()
            guard let descriptor = Int32(name), fstat(descriptor, &other) == 0, other.st_dev == file.st_dev,
                other.st_ino == file.st_ino
            else { return false }
            return fcntl(descriptor, F_GETFL) & O_ACCMODE != O_RDONLY
        })
    }
}
