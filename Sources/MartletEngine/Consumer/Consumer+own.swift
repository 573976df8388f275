import Logging
import MartletBus
import MartletMerge
import MartletReplica

/// Compares the topic with this node's own transactions, and republishes those that it lacks.
extension Consumer {
    /// At the end of every partition, checks that all transactions that the broker acknowledged were read back.
    func compareOwn(_ consumer: any BusConsumer) throws {
        guard let publisher, state.expected > 0 || state.reading.scan != nil else { return }
        var found = try state.reading.scan?.contiguous ?? ownCount.confirmed()
        let isCut = try found < state.expected && state.reading.scan != nil && hasDropped(consumer)
        let verdict = state.republishing.judge(
            found: found, expected: state.expected, isCut: isCut, at: session.instant())
        switch verdict {
        case .nothingMissing: break
        case .publish: publisher.rewind(to: found)
        case .wait:
            state.missingAfter = found
            log.warning(
                "Republished transactions are missing from the topic again; backing off",
                metadata: ["after": "\(found)"])
        case .giveUp:
            try giveUp(through: state.expected)
            found = state.reading.scan?.contiguous ?? found
        }
        if state.reading.scan != nil { try ownCount.confirm(through: found) }
        state.expected = 0
        guard state.reading.scan != nil else { return }
        state.reading.scan = nil
        try ownCount.end()
    }

    /// Republishes transactions whose back-off has ended, and reconnects to count again when that is due.
    func publishMissing() throws {
        let now = session.instant()
        if state.republishing.target != nil { state.republishing.noteConfirmed(try ownCount.confirmed()) }
        if state.republishing.isDue(at: now) { publisher?.rewind(to: state.missingAfter) }
        if let recountAt = state.recountAt, now >= recountAt {
            state.recountAt = nil
            disconnect()
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
