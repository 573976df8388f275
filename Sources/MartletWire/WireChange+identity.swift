import Foundation
import MartletCore

/// Changes that name no row. Programs of before could log the delete of a row that was never theirs
/// (docs/decisions/0028): such a change is skipped alone, wherever it turns up.
extension WireChange {
    /// False where the change names no row: it has no values to name one by, or NULL among them, which equals nothing.
    package var hasIdentity: Bool { identity.makesIdentity }
}

extension [WireValue] {
    /// True of values that name a row.
    var makesIdentity: Bool {
        !isEmpty && !contains { if case .null = $0.kind { true } else { false } }
    }
}

extension WireError {
    package static func noIdentity(_ entity: String) -> WireError {
        WireError("A change of \(entity) has no identity.")
    }
}

extension WireTransaction {
    /// True where some of its changes name no row.
    package var hasNameless: Bool { changes.contains { !$0.hasIdentity } }

    /// The same without changes that name no row. The others keep their stamps.
    package func withoutNameless() -> WireTransaction {
        var named = ChangeSelection()
        for change in changes { named.add(change, isSelected: change.hasIdentity) }
        var kept = self
        kept.changes = named.changes
        return kept
    }

    /// An encoded transaction without changes that name no row, in the same encoding. Nil where it has none such.
    package static func withoutNameless(_ payload: [UInt8]) throws -> [UInt8]? {
        let transaction = try WireFormat.decode(payload)
        guard transaction.hasNameless else { return nil }
        return try WireFormat.encode(
            transaction.withoutNameless(), as: WireEncoding(of: payload))
    }
}

/// Some of the changes of a transaction, with the stamps that they had among all of them.
package struct ChangeSelection {
    package private(set) var changes: [WireChange] = []
    /// From the last one that was selected.
    private var step: UInt64 = 0

    package init() {}

    /// Takes note of the next change of the transaction.
    package mutating func add(_ change: WireChange, isSelected: Bool) {
        // Steps that run over make no time, and are refused by whoever adds them up.
        step &+= change.clockStep
        guard isSelected else { return }
        var selected = change
        selected.clockStep = step
        step = 0
        changes.append(selected)
    }

    /// Takes note of the next change, and selects it where it names no row: of a transaction, not more than are kept.
    ///
    /// - Returns: true where it names a row.
    package mutating func addIfNameless(_ change: WireChange) -> Bool {
        let hasIdentity = change.hasIdentity
        add(change, isSelected: !hasIdentity && changes.count < InputBounds.maxNameless)
        return hasIdentity
    }
}
