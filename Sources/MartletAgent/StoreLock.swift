import Foundation
package import MartletStore
import Synchronization

/// Prevents a second agent on a store: an advisory lock on `<store>.lock`, which ends with the process, however it
/// ends.
///
/// The file stays; it contains the process ID of the last owner of the lock. Works between processes of one machine,
/// and on network file systems that support `flock`. Every user who may write to the store may take the lock: the file
/// has the store's mode, without the rights of others, and the store's owner if root takes the lock.
public final class StoreLock: Sendable {
    /// Nil once the lock is released.
    private let descriptor: Mutex<Int32?>

    /// Takes the lock.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when another process has it, `.readOnly` when the file
    ///   can't be created, or its file system has no locks.
    public init(store path: String) throws {
        let file = AgentLock.file(path)
        // Not assigned to the property before everything has succeeded: an error would run `deinit`, and close it
        // twice.
        let mode = 0o600 | ((FileMode.of(path) ?? 0) & 0o060)
        // The file is emptied and given to the store's owner: a link that somebody put there must not lead elsewhere.
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else {
            let isLink = errno == ELOOP
            throw StoreError(
                .readOnly, "The lock file \(file) can't be opened: \(String(cString: strerror(errno))).",
                hint: isLink
                    ? "It is a link. Find out which program created it, and remove it."
                    : "Let the agent's user write to the store's folder.")
        }
        var opened = stat()
        guard fstat(descriptor, &opened) == 0, opened.st_mode & S_IFMT == S_IFREG, opened.st_nlink <= 1 else {
            close(descriptor)
            throw StoreError(
                .readOnly, "\(file) is not a lock file of Martlet, or has a second hard link.",
                hint: "Find out which program created it, and remove it.")
        }
        guard AgentLock.take(descriptor) else {
            let reason = errno
            let owner =
                (try? String(contentsOfFile: file, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
                ?? ""
            close(descriptor)
            throw Self.refusal(reason, of: file, store: path, owner: owner)
        }
        // The umask may have removed bits. If another user owns the file, it has its mode already.
        fchmod(descriptor, mode)
        // As SQLite does with its own files: a command that root runs must not keep the agent's user out.
        var facts = stat()
        if geteuid() == 0, stat(path, &facts) == 0 { fchown(descriptor, facts.st_uid, facts.st_gid) }
        ftruncate(descriptor, 0)
        let text = "\(getpid())\n"
        _ = text.withCString { write(descriptor, $0, strlen($0)) }
        self.descriptor = Mutex(descriptor)
    }

    /// Returns the error for a lock that can't be taken.
    ///
    /// - Parameters:
    ///   - reason: the error number of `flock`.
    ///   - owner: the process that had the lock last. Empty if that is not known.
    package static func refusal(_ reason: CInt, of file: String, store path: String, owner: String) -> StoreError {
        // Interrupted: others kept looking whether an agent runs.
        guard reason == EWOULDBLOCK || reason == EINTR else {
            return StoreError(
                .readOnly, "The lock file \(file) can't be locked: \(String(cString: strerror(reason))).",
                hint: "Keep the store on a local disk, or on a file system that supports flock.")
        }
        return StoreError(
            .locked, "Another agent\(owner.isEmpty ? "" : " (process \(owner))") runs on \(path).",
            hint: "One agent serves all programs that use the store. Stop the other agent first.")
    }

    /// Returns true if an agent runs on the store.
    public static func isTaken(store path: String) -> Bool {
        AgentLock.isTaken(path)
    }

    /// Releases the lock before the last reference to it is gone.
    func release() {
        descriptor.withLock { descriptor in
            if let taken = descriptor { AgentLock.release(taken) }
            descriptor = nil
        }
    }

    deinit { release() }
}
