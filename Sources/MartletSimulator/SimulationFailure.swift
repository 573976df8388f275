/// A failed check of a simulation.
public struct SimulationFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The check that failed.
    public enum Check: String, Sendable, CaseIterable {
        case schema, convergence, oracle, digest, transfers, lostWrite = "lost write", history, tokens
        case appliedTwice = "applied twice", parked, quarantine, messages, files, held = "held up", stalled, damage,
            error
    }

    public var check: Check
    public var message: String

    public init(_ check: Check, _ message: String) {
        self.check = check
        self.message = message
    }

    /// Returns true if both failed the same check.
    func isLike(_ other: SimulationFailure?) -> Bool {
        guard let other, check == other.check else { return false }
        return check != .error || message.prefix(40) == other.message.prefix(40)
    }

    public var description: String { "\(check.rawValue): \(message)" }
}
