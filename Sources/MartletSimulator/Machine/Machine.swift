import CMartletSimulator
import MartletStore

/// The machine that this thread's nodes run on: SQLite's clock, and a disk that dies when told.
enum Machine {
    /// - Throws: ``StoreError`` where SQLite doesn't take it.
    static func install() throws {
        let code = martlet_simulator_install()
        guard code == 0 else { throw StoreError(.sqlite, "SQLite takes no simulated machine (code \(code)).") }
    }

    static func setTime(_ milliseconds: Int64) { martlet_simulator_set_time(milliseconds) }

    /// All writes succeed from now on.
    static func revive() { martlet_simulator_set_writes(-1) }

    /// The machine dies after this many writes.
    static func die(afterWrites count: Int) { martlet_simulator_set_writes(Int64(count)) }

    static var hasDied: Bool { martlet_simulator_has_died() != 0 }

    static func leave() { martlet_simulator_leave() }
}
