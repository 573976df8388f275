import MartletCore
import MartletWire

/// Changes of consecutive records that become one transaction: of different rows, in the order of their times.
struct ChangeRun {
    /// The most changes of one transaction.
    static let maxChanges = 500
    /// The bytes of records after which a transaction takes no more.
    static let maxBytes = 1 << 20

    /// Their steps are whole clock readings.
    private(set) var changes: [WireChange] = []
    private(set) var lastOffset: Int64 = 0
    private var identities: Set<StableID> = []
    private var byteCount = 0
    private var lastTime = HybridTime.zero

    var isEmpty: Bool { changes.isEmpty }

    /// Returns true if a change of this row may follow. What an event changes depends on the row as it is before, and
    /// the stamps of a transaction ascend.
    func takes(_ identity: StableID, at time: HybridTime) -> Bool {
        isEmpty
            || changes.count < Self.maxChanges && byteCount < Self.maxBytes && time > lastTime
                && !identities.contains(identity)
    }

    mutating func add(_ change: WireChange, of identity: StableID, at time: HybridTime, _ record: SourceRecord) {
        changes.append(change)
        identities.insert(identity)
        byteCount += record.byteCount
        lastTime = time
        lastOffset = record.offset
    }
}
