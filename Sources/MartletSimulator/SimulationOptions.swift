/// What is simulated. The seed decides everything else.
public struct SimulationOptions: Sendable, Equatable {
    /// How many nodes there are, at least two.
    public var nodeCount = 3
    /// How many steps are taken before faults stop and all nodes are brought together.
    public var stepCount = 60
    /// What may go wrong. Each seed mixes some of these.
    public var faults: Set<Fault> = Set(Fault.allCases)
    /// The tables to work on, as SQL. Absent: Martlet's own schema, with every kind of key and reference.
    public var schema: String?
    /// Whether nodes seal what they send, and take only that.
    public var isSealed = false
    /// The steps that are taken, by number, of those that the seed plans. Absent: all.
    public var kept: [Int]?
    /// Whether what nodes log is in the trace too: warnings and errors.
    public var showsLogs = false

    public init() {}

    /// Every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if !(2...200).contains(nodeCount) { problems.append("nodes: \(nodeCount) is not between 2 and 200") }
        if stepCount < 1 || stepCount > 1_000_000 {
            problems.append("steps: \(stepCount) is not between 1 and 1000000")
        }
        return problems
    }
}
