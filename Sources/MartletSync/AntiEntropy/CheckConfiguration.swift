/// How nodes check that they agree.
public struct CheckConfiguration: Sendable, Equatable {
    /// How long after a check in which it agreed with another node this node begins the next one. Zero: it begins none
    /// by itself, and takes no part in those of others.
    public var interval: Duration = .seconds(21_600)

    /// How long rows that were deleted are remembered at least. A node that is away for longer than that, and comes
    /// back, is told by others what was deleted meanwhile with a snapshot, or not at all where it needs none; what it
    /// wrote itself and had not sent is published once more under a new clock. Nil: for ever.
    public var tombstoneHorizon: Duration?
    /// What a node without a horizon takes others to have.
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
