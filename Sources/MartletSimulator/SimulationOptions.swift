/// The parameters of a simulation. The seed determines everything else.
public struct SimulationOptions: Sendable, Equatable {
    /// The tables, and the statements on them.
    public enum Workload: String, Sendable, CaseIterable {
        /// Martlet's own schema, all of whose rules the oracle knows.
        case fixed
        /// A schema generated from the seed, with statements that collide.
        case generated
        /// One or the other, depending on the seed.
        case mixed
    }

    /// The number of nodes, at least two. Nil: three, or two to five for generated tables, depending on the seed.
    public var nodeCount: Int?
    /// The number of steps before faults stop and all nodes are brought together.
    public var stepCount = 60
    /// The faults that may occur. Each seed mixes some of them.
    public var faults = Fault.standard
    /// The tables to use, as SQL. Nil: those of ``workload-swift.property``.
    public var schema: String?
    public var workload = Workload.fixed
    /// The features of generated schemas, and of statements on them and on a user's tables.
    public var features = SchemaFeature.standard
    /// Whether nodes seal (encrypt) the messages that they send, and accept only sealed ones.
    public var isSealed = false
    /// The numbers of the planned steps to run. Nil: all.
    public var kept: [Int]?
    /// The parts of the schema to leave out, by their number in its text.
    public var withoutParts: [Int] = []
    /// The statements to leave out, numbered as a hundred times the step, plus the statement's position in it.
    public var withoutStatements: [Int] = []
    /// Whether the trace includes warnings and errors that nodes log.
    public var showsLogs = false

    public init() {}

    /// Returns every problem with the values, as `field: what is wrong with the value`.
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
