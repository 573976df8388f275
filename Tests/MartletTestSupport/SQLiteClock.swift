import CMartletSimulator
import Foundation
import GRDBSQLite
import MartletStore
import Synchronization

/// The clock that SQLite has in tests, and with it the triggers that capture changes: the real clock, which tests can
/// push forward instead of waiting for it.
///
/// The whole process has one clock, although many tests run at once. SQLite asks the VFS for the time and doesn't say
/// for which file. A clock for each store would need a VFS for each store, and the code under test opens stores by
/// plain paths. One clock is enough: a test needs one write to be later than another, at no particular time. Tests
/// can't disturb each other, because the clock never goes back, and ``advance()`` adds no more than a millisecond.
///
/// The clock is never behind the real one, which other processes have. It is ahead for a millisecond after each
/// ``advance()``, and for longer if tests call that more than once in a millisecond. So compare what triggers have
/// stored with ``milliseconds``, not with `Date()`, and don't rely on what another process writes being later than what
/// this process wrote just before.
///
/// Threads of the simulator have clocks of their own.
package enum SQLiteClock {
    /// The latest time that anybody has read, or to which a test has pushed the clock.
    private static let latest = Atomic<Int64>(0)

    /// How far the clock of the running code is ahead of everybody's.
    @TaskLocal private static var ahead: Duration = .zero

    /// The current time in milliseconds since 1970. Never earlier than a time that was read before.
    package static var milliseconds: Int64 {
        install()
        return read()
    }

    /// Moves the clock to a later millisecond than all that were read until now, here or in another process. What is
    /// written next is later than everything before.
    package static func advance() {
        install()
        latest.max(WallClock.milliseconds, ordering: .sequentiallyConsistent)
        latest.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }

    /// Runs code whose SQLite connections have a clock that is wrong by this much. Nobody else's clock changes.
    ///
    /// SQLite has to run on this thread, as it does with GRDB's synchronous functions.
    package static func with<T>(ahead: Duration, _ body: () throws -> T) rethrows -> T {
        install()
        return try $ahead.withValue(ahead, operation: body)
    }

    /// Gives SQLite this clock. Connections that are open already keep the real one, so the folders of tests call this
    /// before there are stores in them.
    package static func install() { installed }

    private static func read() -> Int64 {
        latest.max(WallClock.milliseconds, ordering: .sequentiallyConsistent).newValue
    }

    // MARK: The VFS

    /// 1970 in SQLite's own count, which begins at noon on November 24, 4714 BC.
    private static let epoch: Int64 = 210_866_760_000_000

    /// The VFS that answers for everything but the time.
    // Safe because it is set once, and SQLite never changes the functions of a VFS that is registered.
    nonisolated(unsafe) private static var original: UnsafeMutablePointer<sqlite3_vfs>?

    /// The VFS, registered once in the life of the process. SQLite keeps a pointer to it, so it is never freed.
    private static let installed: Void = {
        // The simulator holds this lock, too, when it puts its VFS in front.
        let lock = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1)
        sqlite3_mutex_enter(lock)
        defer { sqlite3_mutex_leave(lock) }
        guard let found = sqlite3_vfs_find(nil), found.pointee.iVersion >= 2 else {
            preconditionFailure("SQLite has no file layer that tells the time in milliseconds.")
        }
        original = found
        let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        vfs.initialize(to: found.pointee)
        vfs.pointee.pNext = nil
        vfs.pointee.zName = UnsafePointer(strdup("martlet-test-clock"))
        vfs.pointee.xCurrentTimeInt64 = { _, time in SQLiteClock.tell(time) }
        vfs.pointee.xCurrentTime = { _, days in
            var time: sqlite3_int64 = 0
            let code = SQLiteClock.tell(&time)
            days?.pointee = Double(time) / 86_400_000
            return code
        }
        let code = sqlite3_vfs_register(vfs, 1)
        precondition(code == SQLITE_OK, "SQLite refuses the clock (code \(code)).")
    }()

    /// Answers SQLite, which calls this on the thread that runs the statement, and once a statement.
    private static func tell(_ time: UnsafeMutablePointer<sqlite3_int64>?) -> Int32 {
        if martlet_simulator_is_on() != 0, let original { return original.pointee.xCurrentTimeInt64(original, time) }
        time?.pointee = epoch + read() + Int64(ahead / .milliseconds(1))
        return SQLITE_OK
    }
}
