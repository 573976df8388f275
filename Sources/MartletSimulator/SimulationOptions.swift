/// What is simulated. The seed decides everything else.
public struct SimulationOptions: Sendable, Equatable {
    /// Which tables are worked on, and how.
    public enum Workload: String, Sendable, CaseIterable {
        /// Martlet's own schema, all of whose rules the oracle knows.
        case fixed
        /// A schema that the seed comes to, and statements that get into each other's way.
        case generated
        /// The one or the other, as the seed decides.
        case mixed
    }

    /// How many nodes there are, at least two. Absent: three, and of generated tables two to five, as the seed decides.
    public var nodeCount: Int?
    /// How many steps are taken before faults stop and all nodes are brought together.
    public var stepCount = 60
    /// What may go wrong. Each seed mixes some of these.
    public var faults: Set<Fault> = Set(Fault.allCases)
    /// The tables to work on, as SQL. Absent: those of ``workload-swift.property``.
    public var schema: String?
    public var workload = Workload.fixed
    /// What generated schemas, and statements on them and on a user's tables, can have.
    public var features = SchemaFeature.standard
    /// Whether nodes seal what they send, and take only that.
    public var isSealed = false
    /// The steps that are taken, by number, of those that the seed plans. Absent: all.
    public var kept: [Int]?
    /// The parts of the schema that are left out, by number in its text.
    public var withoutParts: [Int] = []
    /// The statements that are left out: a hundred times the step, and which of it.
    public var withoutStatements: [Int] = []
    /// Whether what nodes log is in the trace too: warnings and errors.
    public var showsLogs = false

    public init() {}

    /// Every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if let nodeCount, !(2...200).contains(nodeCount) {
            problems.append("nodes: \(nodeCount) must be between 2 and 200")
        }
        if stepCount < 1 || stepCount > 1_000_000 {
            problems.append("steps: \(stepCount) must be between 1 and 1000000")
        }
        return problems
    }
}
