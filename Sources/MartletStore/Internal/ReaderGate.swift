import Foundation
import Glibc
import Synchronization

/// Keeps the agent from committing between another program's first read and its first write in one transaction.
///
/// SQLite lets no transaction write that has read before somebody else's commit (`SQLITE_BUSY_SNAPSHOT`), and no busy
/// timeout helps it. `BEGIN; SELECT; UPDATE; COMMIT` is what most frameworks make of a transaction, and an agent that
/// enqueues what a program committed commits just behind it, where the program's next transaction has begun. So it
/// waits a little while other processes read.
///
/// Confined to the thread of its connection.
package struct ReaderGate {
    /// The bytes of the shared-memory file whose locks readers hold (https://www.sqlite.org/walformat.html#wal_locks).
    private static let readMarks: Range<off_t> = 123..<128

    /// How long nobody must have read, where somebody has lately: a program may be between two of its transactions.
    private static let quiet = Duration.milliseconds(2)
    /// For how long after it was seen to read a program is expected to do so again.
    private static let memory = Duration.seconds(10)

    /// The longest wait.
    private let limit: Duration
    private let path: String
    private var descriptor: Int32?
    private var lastSeen: ContinuousClock.Instant?
    /// True where somebody reads for longer than the limit: nobody waits for that one's end.
    private var ignoresReader = false

    /// - Parameter path: of the database.
    package init(path: String, limit: Duration) {
        self.path = path
        self.limit = limit
    }

    /// Returns once nobody reads, or the limit is over.
    package mutating func wait(now: () -> ContinuousClock.Instant) {
        guard limit > .zero else { return }
        let start = now()
        var quietSince: ContinuousClock.Instant?
        var wasFree = false
        var pause: useconds_t = 100
        while true {
            let isRead = hasReaders()
            let time = now()
            let isOver = time - start >= limit
            if isRead {
                if ignoresReader { return }
                lastSeen = time
                quietSince = nil
                if isOver {
                    ignoresReader = !wasFree
                    return
                }
            } else {
                ignoresReader = false
                wasFree = true
                let since = quietSince ?? time
                quietSince = since
                guard let lastSeen, time - lastSeen < Self.memory, time - since < Self.quiet, !isOver else { return }
            }
            // Whoever reads for short times is to be noticed between them, too.
            usleep(isRead ? pause : 100)
            pause = min(pause * 2, 1000)
        }
    }

    /// True while another process has a transaction open that has read.
    package mutating func hasReaders() -> Bool {
        guard let descriptor = opened() else { return false }
        return Self.readMarks.contains { byte in
            var lock = flock()
            lock.l_type = Int16(F_WRLCK)
            lock.l_whence = Int16(SEEK_SET)
            lock.l_start = byte
            lock.l_len = 1
            return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
        }
    }

    private mutating func opened() -> Int32? {
        if let descriptor { return descriptor }
        // Beside the file itself, where the path leads to it by a symbolic link.
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        descriptor = SharedMemoryFiles.descriptor(String(cString: resolved) + "-shm")
        return descriptor
    }
}

/// The shared-memory files that gates look at.
///
/// A process that closes any descriptor of a file loses all of its locks on that file, SQLite's too. So they stay open
/// until the file is gone, when the last connection has been closed.
private enum SharedMemoryFiles {
    private struct Open {
        var descriptor: Int32
        var device: UInt64
        var inode: UInt64
    }

    private static let open = Mutex<[Open]>([])

    static func descriptor(_ path: String) -> Int32? {
        open.withLock { open in
            open.removeAll { file in
                var status = stat()
                guard fstat(file.descriptor, &status) != 0 || status.st_nlink == 0 else { return false }
                close(file.descriptor)
                return true
            }
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            let (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
            if let known = open.first(where: { $0.device == device && $0.inode == inode }) { return known.descriptor }
            let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            open.append(Open(descriptor: descriptor, device: device, inode: inode))
            return descriptor
        }
    }
}
