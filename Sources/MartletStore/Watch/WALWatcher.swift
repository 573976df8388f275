import CMartletSystem
import Foundation
import Synchronization

/// Reports commits to the store by any program, and that the store was moved or replaced: watches its folder with
/// inotify.
///
/// The event precedes the visibility of the commit: the log is written first, and a program that syncs its commits
/// waits for the disk in between. So after an event the watcher checks repeatedly, at increasing intervals, for half a
/// second.
///
/// Not every file system reports what others write, and a symbolic link in another folder may be given another target.
/// So the watcher also checks from time to time without an event, and if the kernel refuses the wait.
///
/// Blocks the thread that runs it.
package final class WALWatcher: Sendable {
    private let inotify: Int32
    private let stopRead: Int32
    private let stopWrite: Int32
    private let fileName: String
    private let logName: String
    private let detector: ChangeDetector
    private let pretended: @Sendable () -> Int32?
    private let isStopped = Atomic(false)

    /// The wait before each check, in nanoseconds. Measured: a commit without sync is visible within 0.2 ms of the
    /// event, one with sync after as long as the disk takes.
    private static let pauses = Array(repeating: 30_000, count: 8) + (1...13).map { 30_000 << $0 }
    /// The longest wait without an event of the store, in nanoseconds.
    private static let idlePause = 10_000_000_000
    /// The wait if the kernel has no memory for one that events end, in seconds.
    private static let failurePause = 0.1

    /// Starts to watch. ``run(_:)`` reports all commits from here on, however late it is called.
    ///
    /// - Parameter pretended: For tests: the result of a wait for events, which then does not take place. Nil: it does.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be read, or if the kernel has no watch left.
    package init(store path: String, pretending pretended: @escaping @Sendable () -> Int32? = { nil }) throws {
        detector = try ChangeDetector(path: path)
        self.pretended = pretended
        let url = URL(fileURLWithPath: RealPath.of(path))
        fileName = url.lastPathComponent
        logName = fileName + "-wal"
        // Set the properties only after everything has succeeded: an error thrown after that would run `deinit`, and
        // close the descriptors twice.
        let inotify = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        var ends: [Int32] = [-1, -1]
        let hasPipe = pipe(&ends) == 0
        for end in ends where end >= 0 { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let folder = url.deletingLastPathComponent().path
        guard inotify >= 0, hasPipe, inotify_add_watch(inotify, folder, UInt32(Self.events)) >= 0 else {
            let reason = String(cString: strerror(errno))
            for descriptor in [inotify] + ends where descriptor >= 0 { close(descriptor) }
            throw StoreError(
                .sqlite, "The folder \(folder) can't be watched: \(reason).",
                hint: "Raise fs.inotify.max_user_watches or max_user_instances.")
        }
        self.inotify = inotify
        stopRead = ends[0]
        stopWrite = ends[1]
        _ = detector.hasCommit()
    }

    private static let events = IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO

    deinit {
        for descriptor in [inotify, stopRead, stopWrite] { close(descriptor) }
    }

    /// Calls `changed` after each commit of another connection, or once for several commits, until ``stop()`` is
    /// called. Also calls it once if the store's path leads to another file from then on: nobody commits to the watched
    /// one any more.
    package func run(_ changed: () -> Void) {
        var looks = Self.pauses.count
        var end = ContinuousClock.now + .nanoseconds(Self.idlePause)
        while true {
            var descriptors = [
                pollfd(fd: inotify, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stopRead, events: Int16(POLLIN), revents: 0),
            ]
            let isLooking = looks < Self.pauses.count
            let pause = Int(max(.zero, end - ContinuousClock.now) / .nanoseconds(1))
            let ready = pretended() ?? martlet_poll_nanoseconds(&descriptors, 2, pause)
            if ready < 0, errno != EINTR { Thread.sleep(forTimeInterval: Self.failurePause) }
            if isStopped.load(ordering: .acquiring) { return }
            let isNews = ready > 0 && descriptors[0].revents != 0 && drain()
            // Events of other files neither replace a check nor put it off: a program may write to them all the time.
            if ready > 0, !isNews, ContinuousClock.now < end { continue }
            looks = isNews ? 0 : min(looks + 1, Self.pauses.count)
            end = ContinuousClock.now + .nanoseconds(looks < Self.pauses.count ? Self.pauses[looks] : Self.idlePause)
            let isCommit = detector.hasCommit()
            // A commit moves nothing: the place is checked after the first event of several, and while nothing happens.
            let isMove = (looks == 0 || !isLooking) && detector.hasMovedAway()
            if isCommit || isMove { changed() }
        }
    }

    /// Is called within ``run(_:)``'s closure, or on its thread.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if the store's path leads to another file by now.
    package func checkIsInPlace() throws { try detector.checkIsInPlace() }

    package func stop() {
        isStopped.store(true, ordering: .releasing)
        var one: UInt8 = 1
        _ = write(stopWrite, &one, 1)
    }

    /// Reads all events. Returns true if one concerned the place of the store, or its log.
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
                    // A checkpoint modifies the store's own file, and commits nothing.
                    let isPlace = event.mask & UInt32(IN_MODIFY) == 0 && name.elementsEqual(fileName.utf8)
                    if isPlace || name.elementsEqual(logName.utf8) || event.mask & UInt32(IN_Q_OVERFLOW) != 0 {
                        found = true
                    }
                    offset += header + Int(event.len)
                }
            }
        }
    }
}
