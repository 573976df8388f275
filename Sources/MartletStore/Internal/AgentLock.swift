import Glibc

/// The lock by which the one agent of a store is known: `flock` on `<store>.lock`.
package enum AgentLock {
    /// Beside the file itself, where the path leads to it by a symbolic link: that is the same store.
    package static func file(_ store: String) -> String {
        guard let resolved = realpath(store, nil) else { return store + ".lock" }
        defer { free(resolved) }
        return String(cString: resolved) + ".lock"
    }

    /// True when an agent runs on the store. Costs a few system calls, between two of which the lock is shared.
    package static func isTaken(_ store: String) -> Bool {
        let descriptor = open(file(store), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return errno == EWOULDBLOCK }
        flock(descriptor, LOCK_UN)
        return false
    }

    /// Takes the lock for an agent. Waits at most some two seconds for those who look whether there is one.
    ///
    /// - Parameter pause: is called with the number of each attempt, counted from 0, that found the lock shared.
    /// - Returns: false where another agent has it, or `flock` fails.
    package static func take(_ descriptor: Int32, pause: (Int) -> Void = pause) -> Bool {
        for attempt in 0..<4000 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            // Those who look share it, an agent does not.
            guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return false }
            flock(descriptor, LOCK_UN)
            pause(attempt)
        }
        return false
    }

    /// Whoever looks is mostly done at once, but may have lost the processor meanwhile.
    package static func pause(_ attempt: Int) {
        if attempt > 100 { usleep(500) } else { sched_yield() }
    }

    /// Gives the lock back, and closes the file. To close it is not enough where a program is being started at that
    /// moment: it has the descriptor, too, until it runs.
    package static func release(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
