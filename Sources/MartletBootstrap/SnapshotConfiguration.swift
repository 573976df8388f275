/// The settings of making snapshots.
public struct SnapshotConfiguration: Sendable, Equatable {
    /// The age of the newest snapshot of any node at which the next one is made. Zero: this node makes none by itself.
    public var interval: Duration = .seconds(86_400)
    /// How many messages must have come to the topic since the newest snapshot before the next one is made.
    public var minTransactions: Int = 1000
    /// The most rows and tombstones in one part. A part is applied in one commit.
    public var partRows: Int = 2000

    public init() {}

    /// Returns every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if interval < .zero { problems.append("interval: \(interval) must not be negative") }
        if minTransactions < 0 { problems.append("minTransactions: \(minTransactions) must not be negative") }
        if partRows < 1 { problems.append("partRows: \(partRows) must be at least 1") }
        return problems
    }
}
