import Foundation

/// Changes that name no row. Programs of before could log the delete of a row that was never theirs (docs/decisions/0028): such
/// a change is skipped alone, wherever it turns up.
extension WireChange {
    /// False where the change names no row: it has no values to name one by, or NULL among them, which equals nothing.
    var hasIdentity: Bool { identity.makesIdentity }
}

extension [WireValue] {
    /// True of values that name a row.
    var makesIdentity: Bool {
        !isEmpty && !contains { if case .null = $0.kind { true } else { false } }
    }
}

extension WireError {
    static func noIdentity(_ entity: String) -> WireError { WireError("A change of \(entity) has no identity.") }
}

extension WireTransaction {
    /// True where some of its changes name no row.
    var hasNameless: Bool { changes.contains { !$0.hasIdentity } }

    /// The same without changes that name no row. The others keep their stamps.
    func withoutNameless() -> WireTransaction {
        var kept = self
        kept.changes = []
        var step: UInt64 = 0
        for var change in changes {
            // Steps that run over make no time, and are refused by whoever adds them up.
            step &+= change.clockStep
            guard change.hasIdentity else { continue }
            change.clockStep = step
            step = 0
            kept.changes.append(change)
        }
        return kept
    }

    /// An encoded transaction without changes that name no row, in the same encoding. Nil where it has none such.
    static func withoutNameless(_ payload: [UInt8]) throws -> [UInt8]? {
        let transaction = try WireFormat.decode(payload)
        guard transaction.hasNameless else { return nil }
        return try WireFormat.encode(
            transaction.withoutNameless(), as: payload.first == UInt8(ascii: "{") ? .json : .protobuf)
    }
}

/// The changes of a transaction that name no row, with their stamps.
struct NamelessChanges {
    /// More than any program writes. What comes beyond them is dropped: nothing can be made of it.
    private static let maxCount = 10_000

    private(set) var changes: [WireChange] = []
    /// From the last one kept.
    private var step: UInt64 = 0

    /// Takes note of the next change of the transaction.
    ///
    /// - Returns: true for one that names a row, and is not among these.
    mutating func leavesOut(_ change: WireChange) -> Bool {
        // Steps that run over make no time: whoever added them up has refused them.
        step &+= change.clockStep
        guard !change.hasIdentity else { return true }
        guard changes.count < Self.maxCount else { return false }
        var kept = change
        kept.clockStep = step
        step = 0
        changes.append(kept)
        return false
    }
}
