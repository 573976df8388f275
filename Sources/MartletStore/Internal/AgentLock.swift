import Glibc

/// The lock by which the one agent of a store is known: `flock` on `<store>.lock`.
package enum AgentLock {
    package static func file(_ store: String) -> String { store + ".lock" }

    /// True when an agent runs on the store. Costs four system calls, and keeps the file locked for others between two of them.
    package static func isTaken(_ store: String) -> Bool {
        let descriptor = open(file(store), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return true }
        flock(descriptor, LOCK_UN)
        return false
    }

    /// Takes the lock for an agent.
    ///
    /// - Returns: false where another agent has it.
    package static func take(_ descriptor: Int32) -> Bool {
        for _ in 0..<10_000 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            // Where it can be shared, only those have it who look whether there is an agent.
            guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return false }
            flock(descriptor, LOCK_UN)
            sched_yield()
        }
        return false
    }
}
