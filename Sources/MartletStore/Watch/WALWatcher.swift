import CMartletSystem
import Foundation

/// Reports commits to the store by any program: watches the write-ahead log with inotify.
///
/// The event precedes the visibility of the commit: the log is written first, and a program that syncs its commits
/// waits for the disk in between. So after an event the watcher checks repeatedly, at increasing intervals, for half a
/// second.
///
/// Blocks the thread that runs it.
package final class WALWatcher: Sendable {
    private let inotify: Int32
    private let stopRead: Int32
    private let stopWrite: Int32
    private let fileName: String
    private let detector: ChangeDetector

    /// The wait before each check, in nanoseconds. Measured: a commit without sync is visible within 0.2 ms of the
    /// event, one with sync after as long as the disk takes.
    private static let pauses = Array(repeating: 30_000, count: 8) + (1...13).map { 30_000 << $0 }

    /// Starts to watch. ``run(_:)`` reports all commits from here on, however late it is called.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be read, or if the kernel has no watch left.
    package init(store path: String) throws {
        detector = try ChangeDetector(path: path)
        let url = URL(fileURLWithPath: RealPath.of(path))
        fileName = url.lastPathComponent + "-wal"
        // Set the properties only after everything has succeeded: an error thrown after that would run `deinit`, and
        // close the descriptors twice.
        let inotify = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        var ends: [Int32] = [-1, -1]
        let hasPipe = pipe(&ends) == 0
        for end in ends where end >= 0 { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let folder = url.deletingLastPathComponent().path
        guard inotify >= 0, hasPipe, inotify_add_watch(inotify, folder, UInt32(IN_MODIFY) | UInt32(IN_CREATE)) >= 0
        else {
            let reason = String(cString: strerror(errno))
            for descriptor in [inotify] + ends where descriptor >= 0 { close(descriptor) }
            throw StoreError(
                .sqlite, "The folder \(folder) can't be watched: \(reason).",
                hint: "Raise fs.inotify.max_user_watches or max_user_instances.")
        }
        self.inotify = inotify
        stopRead = ends[0]
        stopWrite = ends[1]
        _ = detector.hasChanged()
    }

    deinit {
        for descriptor in [inotify, stopRead, stopWrite] { close(descriptor) }
    }

    /// Calls `changed` after each commit of another connection, or once for several commits, until ``stop()`` is
    /// called.
    package func run(_ changed: () -> Void) {
        var looks = Self.pauses.count
        while true {
            var descriptors = [
                pollfd(fd: inotify, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stopRead, events: Int16(POLLIN), revents: 0),
            ]
            let ready =
                looks < Self.pauses.count
                ? martlet_poll_nanoseconds(&descriptors, 2, Self.pauses[looks]) : poll(&descriptors, 2, -1)
            if descriptors[1].revents != 0 { return }
            if ready < 0 && errno != EINTR { return }
            looks += 1
            if descriptors[0].revents != 0, drain() { looks = 0 }
            if looks < Self.pauses.count, detector.hasChanged() { changed() }
        }
    }

    package func stop() {
        var one: UInt8 = 1
        _ = write(stopWrite, &one, 1)
    }

    /// Reads all events. Returns true if one concerned the log.
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
