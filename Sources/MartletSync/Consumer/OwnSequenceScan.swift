/// Which of a node's own transactions a topic still has. Pure.
package struct OwnSequenceScan {
    /// True when the log has its first offset: what is missing before the first one found was lost, not expired.
    package let beginsAtFirst: Bool
    /// Ascending, and apart from each other.
    private var seen: [ClosedRange<Int64>] = []

    package init(beginsAtFirst: Bool) { self.beginsAtFirst = beginsAtFirst }

    mutating func note(_ message: IncomingMessage, node: NodeID) {
        guard let envelope = try? WireEnvelope(message), envelope.origin == node, message.isIntact else { return }
        note(envelope.sequence)
    }

    /// Sequences may come in any order, and again: what was lost is published again behind what was not.
    package mutating func note(_ sequence: Int64) {
        var range = sequence...sequence
        let index = seen.firstIndex { $0.upperBound >= sequence - 1 } ?? seen.endIndex
        while index < seen.endIndex, seen[index].lowerBound <= range.upperBound + 1 {
            range = min(range.lowerBound, seen[index].lowerBound)...max(range.upperBound, seen[index].upperBound)
            seen.remove(at: index)
        }
        seen.insert(range, at: index)
    }

    /// The last sequence up to which nothing is missing.
    package var contiguous: Int64 {
        guard let first = seen.first, !beginsAtFirst || first.lowerBound == 1 else { return 0 }
        return first.upperBound
    }
}
