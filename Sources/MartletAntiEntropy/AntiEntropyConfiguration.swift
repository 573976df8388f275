/// The settings of the checks between nodes (anti-entropy).
public struct AntiEntropyConfiguration: Sendable, Equatable {
    /// The time from a check to the next one that this node begins: counted from the last check that it began, or in
    /// which it agreed with another node, and up to a quarter longer, by node. Zero: this node starts no checks,
    /// and ignores those of other nodes.
    public var interval: Duration = .seconds(21_600)

    /// The minimum time for which tombstones are kept. A node that was away for longer learns from a snapshot of
    /// another node what was deleted meanwhile, or not at all if it needs no snapshot; what it wrote itself and had not
    /// sent is republished with new stamps. Nil: for ever.
    public var tombstoneHorizon: Duration?
    /// The horizon that a node without one assumes for others.
    static let assumedHorizon = Duration.seconds(86_400)

    public init() {}

    /// Returns every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if interval < .zero { problems.append("interval: \(interval) must not be negative") }
        if let horizon = tombstoneHorizon {
            if interval == .zero {
                problems.append("tombstoneHorizon: needs checks, but the interval is zero")
            } else if horizon < interval * 4 {
                problems.append("tombstoneHorizon: \(horizon) must be at least four times the interval")
            }
        }
        return problems
    }
}
