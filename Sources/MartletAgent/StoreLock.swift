import Foundation
import MartletStore
import Synchronization

/// Keeps a second agent off a store: an advisory lock on `<store>.lock`, which ends with the process, however it ends.
///
/// The file stays; it holds the process number of whoever took the lock last. Works between processes of one machine,
/// and on network file systems that support `flock`. Whoever may write the store may take the lock: the file has the
/// store's mode, without that of others.
public final class StoreLock: Sendable {
    /// Nil once it is given back.
    private let descriptor: Mutex<Int32?>

    /// Takes the lock.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when another process has it, `.readOnly` when the file
    ///   can't be made.
    public init(store path: String) throws {
        let file = AgentLock.file(path)
        // Not the property before all is well: what is thrown then would run `deinit`, and close it twice.
        let mode = 0o600 | ((FileMode.of(path) ?? 0) & 0o060)
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            throw StoreError(
                .readOnly, "The lock file \(file) can't be opened: \(String(cString: strerror(errno))).",
                hint: "Let the agent's user write to the store's folder.")
        }
        guard AgentLock.take(descriptor) else {
            let owner =
                (try? String(contentsOfFile: file, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
                ?? ""
            close(descriptor)
            throw StoreError(
                .locked, "Another agent\(owner.isEmpty ? "" : " (process \(owner))") runs on \(path).",
                hint: "One agent serves all programs that use the store. Stop the other agent first.")
        }
        // Past the umask. Another user's file has its mode already.
        fchmod(descriptor, mode)
        ftruncate(descriptor, 0)
        let text = "\(getpid())\n"
        _ = text.withCString { write(descriptor, $0, strlen($0)) }
        self.descriptor = Mutex(descriptor)
    }

    /// True when an agent runs on the store.
    public static func isTaken(store path: String) -> Bool {
        AgentLock.isTaken(path)
    }

    /// Gives the lock back, before the last reference to it is gone.
    func release() {
        descriptor.withLock { descriptor in
            if let taken = descriptor { AgentLock.release(taken) }
            descriptor = nil
        }
    }

    deinit { release() }
}
