import Logging
import MartletBus
import MartletMerge
import MartletReplica

/// Compares the topic with this node's own transactions, and republishes those that it lacks.
extension Consumer {
    /// At the end of every partition, checks that all transactions that the broker acknowledged were read back.
    func compareOwn(_ consumer: any BusConsumer) throws {
        let expected = state.own.expected
        guard let publisher, expected > 0 || state.reading.scan != nil else { return }
        var found = try state.reading.scan?.contiguous ?? ownCount.confirmed()
        let isCut = try found < expected && state.reading.scan != nil && hasDropped(consumer)
        switch state.own.judgeEnd(found: found, isCut: isCut, at: session.instant()) {
        case .nothingMissing: break
        case .publish: publisher.rewind(to: found)
        case .wait:
            log.warning(
                "Republished transactions are missing from the topic again; backing off",
                metadata: ["after": "\(found)"])
        case .giveUp:
            try giveUp(through: expected)
            found = state.reading.scan?.contiguous ?? found
        }
        if state.reading.scan != nil { try ownCount.confirm(through: found) }
        state.own.noteCompared()
        guard state.reading.scan != nil else { return }
        state.reading.scan = nil
        try ownCount.end()
    }

    /// Republishes transactions whose back-off has ended, and reconnects to count again when that is due.
    func publishMissing() throws {
        let now = session.instant()
        if state.own.isAwaiting {
            let confirmed = try ownCount.confirmed()
            state.own.noteConfirmed(confirmed)
        }
        if let sequence = state.own.takeDue(at: now) { publisher?.rewind(to: sequence) }
        if state.own.takeRecount(at: now) { disconnect() }
    }

    /// Checks that messages which were in flight at the assignment were read back after their acknowledgement. If they
    /// weren't, another topic has them.
    func compareAnswered(_ consumer: any BusConsumer) throws {
        // A count that is under way, or a partition that is not read to its end, comes first.
        guard let publisher, let unanswered = state.own.unanswered, state.reading.scan == nil,
            state.reading.state == .caughtUp, publisher.currentProgress.acknowledged >= unanswered.last
        else { return }
        let found = try ownCount.confirmed()
        guard found < unanswered.last else { return state.own.noteAnswered() }
        let ends = try unanswered.ends ?? watermarks(consumer).mapValues(\.high)
        let isRead = state.reading.hasRead(ends)
        if let after = state.own.judgeAnswered(found: found, ends: ends, isRead: isRead, at: session.instant()) {
            publisher.rewind(to: after)
        }
    }

    /// Returns true if retention has cut the beginning of a partition that may have messages of this node.
    private func hasDropped(_ consumer: any BusConsumer) throws -> Bool {
        let own = try ownCount.partitions()
        for partition in own.isEmpty ? Set(state.reading.partitions) : own {
            if try consumer.watermarks(partition: partition, timeout: .seconds(5)).low > 0 { return true }
        }
        return false
    }

    /// Gives transactions up, because retention dropped them each time before the last of them was there.
    private func giveUp(through last: Int64) throws {
        let missing = state.reading.scan?.missing(through: last) ?? []
        try ownCount.giveUp(missing)
        for range in missing { state.reading.scan?.note(range) }
        let unkept = try ownCount.unkept().filter { missing.contains($0.sequences) }
        log.error(
            "Topic retention too small: no longer publishing these transactions; other nodes get them by snapshot",
            metadata: [
                "sequences": "\(missing.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ", "))",
                "bytes": "\(unkept.reduce(0) { $0 + $1.bytes })",
            ])
    }
}
