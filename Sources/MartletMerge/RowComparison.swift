package import MartletCore

/// The differences between two nodes' states of a row, register by register. A pure value.
package struct RowComparison {
    /// True if the other node knows of a later insert or delete.
    package var isExistenceNewer = false
    /// True if this node knows of a later insert or delete.
    package var isExistenceOlder = false
    /// The slots of the columns whose state is later on the other node.
    package var newer: [Int] = []
    /// The slots of the columns whose state is later on this node.
    package var older: [Int] = []
    /// The slots of the columns with equal stamps but different values.
    package var tied: [Int] = []

    package var isSame: Bool {
        !isExistenceNewer && !isExistenceOlder && newer.isEmpty && older.isEmpty && tied.isEmpty
    }

    /// Compares two states. Registers with the lowest stamp count as never set, since no transaction has published
    /// them.
    package init(mine: RowRecord?, theirs: RowRecord?, columns: [ComparedColumn]) {
        let here = mine?.existence.flatMap { $0.stamp == .zero ? nil : $0.stamp } ?? .zero
        let there = theirs?.existence.flatMap { $0.stamp == .zero ? nil : $0.stamp } ?? .zero
        isExistenceNewer = there > here
        isExistenceOlder = here > there
        for column in columns {
            let slot = column.slot
            let mineRegister = mine?.register(slot)
            let theirRegister = theirs?.register(slot)
            // If a row was lost, its stable ID was lost with it. The local key by which rows refer to it means nothing
            // on other nodes.
            if column.isReference, [mineRegister, theirRegister].contains(where: { $0?.value.isInteger ?? false }) {
                continue
            }
            // Values set before a delete have no effect.
            let mineStamp = mineRegister?.stamp ?? mine?.clocks.deleted ?? .zero
            let theirStamp = theirRegister?.stamp ?? theirs?.clocks.deleted ?? .zero
            if let theirRegister, theirRegister.stamp > mineStamp {
                newer.append(slot)
            } else if let mineRegister, mineRegister.stamp > theirStamp {
                older.append(slot)
            } else if let mineRegister, let theirRegister, mineRegister.stamp != .zero,
                column.differ(mineRegister.value, theirRegister.value)
            {
                tied.append(slot)
            }
        }
    }
}

/// The rule that decides between two values with equal stamps. A pure value.
///
/// One of the values was changed behind Martlet's back, since a stamp is given to one value only. The node that gave
/// the stamp knows the right value. If that node doesn't take part, the value with the greater encoding wins, which is
/// the same on every node.
package struct TieRule {
    package let node: NodeID
    package let sender: NodeID
    /// Nodes that were recently active on the topic for checks. Their answer is awaited.
    package var present: Set<NodeID> = []

    package init(node: NodeID, sender: NodeID, present: Set<NodeID> = []) {
        self.node = node
        self.sender = sender
        self.present = present
    }

    /// - Returns: true if the sender's value wins, false if this node's does; nil if another node has to decide.
    package func takesTheirs(_ stamp: Stamp, mine: Value, theirs: Value) -> Bool? {
        if stamp.node == sender { return true }
        if stamp.node == node { return false }
        if present.contains(stamp.node) { return nil }
        return StableID(values: [mine]).bytes.lexicographicallyPrecedes(StableID(values: [theirs]).bytes)
    }
}

/// A column as two nodes compare it.
package struct ComparedColumn {
    package var slot: Int
    /// True for a foreign key to a row that every node identifies by its stable ID.
    package var isReference: Bool
    /// True if the column used to be a reference.
    package var wasReference: Bool

    package init(slot: Int, isReference: Bool, wasReference: Bool) {
        self.slot = slot
        self.isReference = isReference
        self.wasReference = wasReference
    }

    /// Returns true if two values with equal stamps differ because one was changed behind Martlet's back.
    ///
    /// Integers in a column that used to be a reference don't count: each node kept its own local key of the row.
    func differ(_ a: Value, _ b: Value) -> Bool { a != b && !(wasReference && a.isInteger && b.isInteger) }
}

extension Value {
    package var isInteger: Bool { if case .integer = self { true } else { false } }
}
