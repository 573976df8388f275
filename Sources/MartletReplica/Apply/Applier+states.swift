/// Row states: all registers of a row at once, as snapshots and checks have them.
extension Applier {
    /// Applies the row states of a snapshot or a check. See ``add(state:)``.
    package func apply(states: [RemoteChange]) throws {
        for change in states { try add(state: change) }
        try finishStates()
    }

    /// Applies a row state of a snapshot. There may be many, and chains of references: each is tried at most twice, and
    /// then applied by the arrival of what it waits for.
    package func add(state change: RemoteChange) throws {
        if try !apply(change, isFinal: false) { waiting.append(change) }
    }

    /// Applies the row states that still wait: no other follows.
    package func finishStates() throws {
        for change in waiting { _ = try apply(change, isFinal: true) }
        waiting = []
        try settle()
    }
}
