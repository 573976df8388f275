import CMartletSystem
import Foundation
import MartletStore

/// Tells when some program has committed to the store: watches the write-ahead log with inotify.
///
/// The event comes before the commit can be seen (the log is written first), so that the change is reported several times
/// over the next moments; who is told looks cheaply, and may look in vain.
///
/// Blocks the thread that runs it.
final class WALWatcher: Sendable {
    private let inotify: Int32
    private let stopRead: Int32
    private let stopWrite: Int32
    private let fileName: String

    /// - Throws: ``/MartletStore/StoreError`` when the kernel has no watch left.
    init(store path: String) throws {
        let url = URL(fileURLWithPath: path)
        fileName = url.lastPathComponent + "-wal"
        inotify = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        var ends: [Int32] = [-1, -1]
        let hasPipe = pipe(&ends) == 0
        stopRead = ends[0]
        stopWrite = ends[1]
        for end in ends where end >= 0 { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let folder = url.deletingLastPathComponent().path
        guard inotify >= 0, hasPipe, inotify_add_watch(inotify, folder, UInt32(IN_MODIFY) | UInt32(IN_CREATE)) >= 0 else {
            let reason = String(cString: strerror(errno))
            for descriptor in [inotify, stopRead, stopWrite] where descriptor >= 0 { close(descriptor) }
            throw StoreError(
                .sqlite, "The folder \(folder) can't be watched: \(reason).",
                hint: "Raise fs.inotify.max_user_watches or max_user_instances.")
        }
    }

    deinit {
        for descriptor in [inotify, stopRead, stopWrite] { close(descriptor) }
    }

    /// Calls `changed` when there may be something new, until ``stop()``.
    func run(_ changed: () -> Void) {
        // How often a change is reported again, and how long after the last time. Measured: the commit is visible within
        // 0.2 ms of the event.
        let repeats = 8
        let pauseNanoseconds = 30_000
        var left = 0
        while true {
            var descriptors = [
                pollfd(fd: inotify, events: Int16(POLLIN), revents: 0), pollfd(fd: stopRead, events: Int16(POLLIN), revents: 0),
            ]
            let ready = left > 0 ? martlet_poll_nanoseconds(&descriptors, 2, pauseNanoseconds) : poll(&descriptors, 2, -1)
            if descriptors[1].revents != 0 { return }
            if ready < 0 && errno != EINTR { return }
            if descriptors[0].revents != 0, drain() { left = repeats }
            if left > 0 {
                left -= 1
                changed()
            }
        }
    }

    func stop() {
        var one: UInt8 = 1
        _ = write(stopWrite, &one, 1)
    }

    /// Reads all events. Returns true when one was of the log.
    private func drain() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var found = false
        while true {
            let count = read(inotify, &buffer, buffer.count)
            guard count > 0 else { return found }
            buffer.withUnsafeBytes { bytes in
                var offset = 0
                let header = MemoryLayout<inotify_event>.size
                while offset + header <= count {
                    let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                    let name = bytes[(offset + header)..<(offset + header + Int(event.len))].prefix { $0 != 0 }
                    if name.elementsEqual(fileName.utf8) || event.mask & UInt32(IN_Q_OVERFLOW) != 0 { found = true }
                    offset += header + Int(event.len)
                }
            }
        }
    }
}

/// Watches a store from outside.
public enum StoreChanges {
    /// Calls `changed` at once, and then whenever some program has committed to the store. Blocks the calling thread
    /// until `changed` throws.
    public static func watch(_ path: String, _ changed: () throws -> Void) throws {
        let watcher = try WALWatcher(store: path)
        var failure: (any Error)?
        try changed()
        watcher.run {
            guard failure == nil else { return }
            do { try changed() } catch {
                failure = error
                watcher.stop()
            }
        }
        if let failure { throw failure }
    }
}
