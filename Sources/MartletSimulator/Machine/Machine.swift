import CMartletSimulator
import GRDB
import MartletStore

/// The machine on which this thread's nodes run: SQLite's clock, and a disk that dies or fills up on request.
package enum Machine {
    /// - Throws: ``/MartletCore/StoreError`` if SQLite doesn't accept it.
    package static func install() throws {
        let code = martlet_simulator_install()
        guard code == 0 else { throw StoreError(.sqlite, "SQLite refuses the simulated machine (code \(code)).") }
    }

    package static func setTime(_ milliseconds: Int64) { martlet_simulator_set_time(milliseconds) }

    /// Lets all writes succeed from now on.
    static func revive() { martlet_simulator_set_writes(-1) }

    /// Lets the machine die after this many writes.
    static func die(afterWrites count: Int) { martlet_simulator_set_writes(Int64(count)) }

    /// The number of bytes left on the disk. Nil: no limit.
    static var room: Int64? {
        get {
            let left = martlet_simulator_room()
            return left < 0 ? nil : left
        }
        set { martlet_simulator_set_room(newValue ?? -1) }
    }

    static var hasDied: Bool { martlet_simulator_has_died() != 0 }

    /// Returns true for SQLite's errors on a full disk.
    static func isFull(_ error: any Error) -> Bool {
        let code = (error as? DatabaseError)?.extendedResultCode.rawValue ?? (error as? StoreError)?.sqliteCode ?? 0
        return code & 0xff == ResultCode.SQLITE_FULL.rawValue || code == ResultCode.SQLITE_IOERR_SHMSIZE.rawValue
    }

    package static func leave() { martlet_simulator_leave() }
}
