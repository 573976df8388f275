import Glibc

/// The lock that marks the one agent of a store: `flock` on `<store>.lock`.
package enum AgentLock {
    /// Returns the path of the lock file. If the store's path is a symbolic link, the lock is beside the file itself,
    /// because that is the same store.
    package static func file(_ store: String) -> String { RealPath.of(store) + ".lock" }

    /// Returns whether an agent runs on the store. Costs a few system calls, and holds a shared lock between two of
    /// them.
    package static func isTaken(_ store: String) -> Bool {
        let descriptor = open(file(store), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return errno == EWOULDBLOCK }
        flock(descriptor, LOCK_UN)
        return false
    }

    /// Takes the lock for an agent. Waits at most about two seconds for processes that check for an agent.
    ///
    /// - Parameter pause: Called with the number of each attempt, counted from 0, that found the lock shared.
    /// - Returns: False if another agent has the lock, or if `flock` fails; `errno` tells which.
    package static func take(_ descriptor: Int32, pause: (Int) -> Void = pause) -> Bool {
        for attempt in 0..<4000 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            // A check shares the lock, an agent does not.
            guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return false }
            flock(descriptor, LOCK_UN)
            pause(attempt)
        }
        return false
    }

    /// A check is usually done at once, but the checking process may have lost the processor.
    package static func pause(_ attempt: Int) {
        if attempt > 100 { usleep(500) } else { sched_yield() }
    }

    /// Releases the lock, and closes the file. Closing alone is not enough while the process is starting another
    /// program: that has a copy of the descriptor until it runs.
    package static func release(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
