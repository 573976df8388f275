import Foundation
import MartletCore

/// Handling of changes without a row identity. Older versions could log the delete of a row that had never been theirs
/// (docs/decisions/0028). Such a change is skipped on its own, wherever it occurs.
extension WireChange {
    /// False if the change has no row identity: its identity has no values, or contains NULL, which equals nothing, or
    /// NaN, which the store can only keep as NULL.
    package var hasIdentity: Bool { identity.makesIdentity }
}

extension [WireValue] {
    /// True if the values form a row identity.
    var makesIdentity: Bool {
        !isEmpty
            && !contains {
                switch $0.kind {
                case .null: true
                case .real(let value): value.isNaN
                default: false
                }
            }
    }
}

extension WireError {
    package static func noIdentity(_ entity: String) -> WireError {
        WireError("A change of \(entity) has no identity.")
    }
}

extension WireTransaction {
    /// True if some changes have no row identity.
    package var hasChangeWithoutIdentity: Bool { changes.contains { !$0.hasIdentity } }

    /// Returns the transaction without the changes that have no row identity. The others keep their stamps.
    package func droppingChangesWithoutIdentity() -> WireTransaction {
        var named = ChangeSelection()
        for change in changes { named.add(change, isSelected: change.hasIdentity) }
        var kept = self
        kept.changes = named.changes
        return kept
    }

    /// Returns an encoded transaction without the changes that have no row identity, in the same encoding. Returns nil
    /// if all changes have one.
    package static func droppingChangesWithoutIdentity(_ payload: [UInt8]) throws -> [UInt8]? {
        let transaction = try WireFormat.decode(payload)
        guard transaction.hasChangeWithoutIdentity else { return nil }
        return try WireFormat.encode(
            transaction.droppingChangesWithoutIdentity(), as: WireEncoding(of: payload))
    }
}

/// A subset of a transaction's changes that keep the stamps that they have in the whole transaction.
package struct ChangeSelection {
    package private(set) var changes: [WireChange] = []
    /// The clock steps since the last selected change.
    private var step: UInt64 = 0

    package init() {}

    /// Adds the next change of the transaction, and selects it if asked to.
    package mutating func add(_ change: WireChange, isSelected: Bool) {
        // An overflowing sum of steps is not a valid time; code that adds up the steps rejects it.
        step &+= change.clockStep
        guard isSelected else { return }
        var selected = change
        selected.clockStep = step
        step = 0
        changes.append(selected)
    }

    /// Adds the next change, and selects it if it has no row identity. Selects no more than `InputBounds.maxNameless`
    /// changes.
    ///
    /// - Returns: true if the change has a row identity.
    package mutating func addIfWithoutIdentity(_ change: DecodedChange) throws(WireError) -> Bool {
        if change.hasIdentity || changes.count >= InputBounds.maxWithoutIdentity {
            step &+= change.clockStep
        } else {
            add(try change.message(), isSelected: true)
        }
        return change.hasIdentity
    }
}
