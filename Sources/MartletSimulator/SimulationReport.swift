import MartletStore

/// The result of one seed.
public struct SimulationReport: Sendable {
    public var seed: UInt64
    public var options: SimulationOptions
    /// The faults of this seed, in the order of their names.
    public var faults: [Fault] = []
    /// Nil if every check passed.
    public var failure: SimulationFailure?
    /// The events, one line per step.
    public var trace: [String] = []
    /// The numbers of the steps that were run.
    public var steps: [Int] = []
    /// The numbers of the statements that were run on tables other than Martlet's own.
    public var statements: [Int] = []
    /// The number of parts of the schema that can be left out, if the run failed.
    package var partCount = 0
    /// The number of published transactions.
    public var transactionCount = 0
    /// 16 hexadecimal digits over the trace and the nodes' final contents: the same whenever the seed is run.
    public var hash = ""

    package init(seed: UInt64, options: SimulationOptions) {
        self.seed = seed
        self.options = options
    }

    /// The command that repeats the run.
    public func command(schemaFile: String? = nil) -> String {
        let standard = SimulationOptions()
        var words = ["martlet simulate --seed \(seed)"]
        if let nodeCount = options.nodeCount { words.append("--nodes \(nodeCount)") }
        if options.stepCount != standard.stepCount { words.append("--steps \(options.stepCount)") }
        if options.faults != standard.faults {
            let isMore = options.faults.isSuperset(of: standard.faults)
            let named = isMore ? options.faults.subtracting(standard.faults) : options.faults
            let list = ((isMore ? ["default"] : []) + named.sorted().map(\.rawValue)).joined(separator: ",")
            words.append("--faults \(list.isEmpty ? "none" : list)")
        }
        if options.schema == nil, options.workload != standard.workload {
            words.append("--workload \(options.workload.rawValue)")
        }
        if options.features != standard.features { words.append("--features=\(FeatureList.text(options.features))") }
        if let schemaFile { words.append("--schema \(ShellWord.quoted(schemaFile))") }
        if options.isSealed { words.append("--sealed") }
        if let kept = options.kept { words.append("--keep \(StepList.text(kept))") }
        if !options.withoutParts.isEmpty { words.append("--without \(StepList.text(options.withoutParts))") }
        if !options.withoutStatements.isEmpty {
            words.append("--without-statements \(StepList.text(options.withoutStatements))")
        }
        return (words + ["--trace"]).joined(separator: " ")
    }
}

/// Converts step numbers to and from text: `3,7-9`.
public enum StepList {
    public static func text(_ numbers: [Int]) -> String {
        var ranges: [ClosedRange<Int>] = []
        for number in numbers.sorted() {
            if let last = ranges.last, last.upperBound == number - 1 {
                ranges[ranges.count - 1] = last.lowerBound...number
            } else {
                ranges.append(number...number)
            }
        }
        guard !ranges.isEmpty else { return "none" }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            .joined(separator: ",")
    }

    /// Nil for any other text.
    public static func numbers(_ text: String) -> [Int]? {
        if text == "none" { return [] }
        var numbers: [Int] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let bounds = part.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
            guard let first = bounds.first ?? nil, let last = bounds.last ?? nil, bounds.count <= 2, first >= 0,
                first <= last, last - first < 1_000_000
            else { return nil }
            numbers += first...last
        }
        return numbers
    }
}

/// A hash over lines of text.
struct TraceHash {
    private var hash = FNV1a()

    mutating func add(_ text: String) {
        hash.add(text.utf8)
        hash.add(UInt8(ascii: "\n"))
    }

    var text: String { withUnsafeBytes(of: hash.value.bigEndian) { Hex.text($0) } }
}
