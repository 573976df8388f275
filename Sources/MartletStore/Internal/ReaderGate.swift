import Foundation
import Glibc
import MartletCore
import Synchronization

/// Prevents the agent from committing between another program's first read and its first write in one transaction.
///
/// SQLite refuses writes of a transaction that has read before another connection's commit (`SQLITE_BUSY_SNAPSHOT`),
/// and no busy timeout helps. Most frameworks turn a transaction into `BEGIN; SELECT; UPDATE; COMMIT`. An agent that
/// enqueues a program's changes commits right after that program, when its next transaction may have begun. So the
/// agent waits a little while other processes read.
///
/// Confined to the thread of its connection.
package struct ReaderGate {
    /// The bytes of the shared-memory file on which readers hold locks
    /// (https://www.sqlite.org/walformat.html#wal_locks).
    private static let readMarks: Range<off_t> = 123..<128

    /// How long there must be no reader, if there was one recently: a program may be between two of its transactions.
    private static let quiet = Duration.milliseconds(2)
    /// How long after its last read a program is expected to read again.
    private static let memory = Duration.seconds(10)

    /// The longest wait.
    private let limit: Duration
    private let path: String
    private var descriptor: Int32?
    private var lastSeen: ContinuousClock.Instant?
    /// True if a reader has stayed for longer than the limit. The gate no longer waits for that reader.
    private var ignoresReader = false

    /// - Parameter path: The path of the database.
    package init(path: String, limit: Duration) {
        self.path = path
        self.limit = limit
    }

    /// Waits until there is no reader, or until the limit is reached.
    package mutating func wait(now: () -> ContinuousClock.Instant) {
        guard limit > .zero else { return }
        let start = now()
        var quietSince: ContinuousClock.Instant?
        var wasFree = false
        var backoff = Backoff(from: .microseconds(100), to: .milliseconds(1))
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
            // Poll often between reads, so that short reads are noticed too.
            if !isRead { backoff.reset() }
            usleep(useconds_t(backoff.fail() / .microseconds(1)))
        }
    }

    /// Returns whether another process has a transaction open that has read.
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
        descriptor = SharedMemoryFiles.descriptor(RealPath.of(path) + "-shm")
        return descriptor
    }
}

/// The shared-memory files whose locks are examined.
///
/// If a process closes any descriptor of a file, it loses all of its locks on that file, including SQLite's. So these
/// descriptors stay open until the file is gone, after the last connection has been closed.
enum SharedMemoryFiles {
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
