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

    /// True where it has nothing else.
    var isNameless: Bool { !changes.isEmpty && changes.allSatisfy { !$0.hasIdentity } }

    /// The same without changes that name no row. The others keep their stamps.
    func withoutNameless() -> WireTransaction { keeping(\.hasIdentity) }

    /// What of it names no row.
    func onlyNameless() -> WireTransaction { keeping { !$0.hasIdentity } }

    private func keeping(_ isKept: (WireChange) -> Bool) -> WireTransaction {
        var kept = self
        kept.changes = []
        var step: UInt64 = 0
        for var change in changes {
            // Steps that run over make no time, and are refused by whoever adds them up.
            step &+= change.clockStep
            guard isKept(change) else { continue }
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
