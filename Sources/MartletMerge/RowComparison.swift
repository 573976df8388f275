package import MartletCore

/// Which registers of a row are newer where. Pure.
package struct RowComparison {
    /// True where the other one knows of a later insert or delete.
    package var isExistenceNewer = false
    /// True where this one does.
    package var isExistenceOlder = false
    /// Columns that the other one has in a later state, by slot.
    package var newer: [Int] = []
    /// Columns that this one has in a later state.
    package var older: [Int] = []
    /// Columns of one stamp with two values.
    package var tied: [Int] = []

    package var isSame: Bool {
        !isExistenceNewer && !isExistenceOlder && newer.isEmpty && older.isEmpty && tied.isEmpty
    }

    /// What has the lowest stamp counts as nothing: no transaction told of it.
    package init(mine: RowRecord?, theirs: RowRecord?, columns: [ComparedColumn]) {
        let here = mine?.existence.flatMap { $0.stamp == .zero ? nil : $0.stamp } ?? .zero
        let there = theirs?.existence.flatMap { $0.stamp == .zero ? nil : $0.stamp } ?? .zero
        isExistenceNewer = there > here
        isExistenceOlder = here > there
        for column in columns {
            let slot = column.slot
            let mineRegister = mine?.register(slot)
            let theirRegister = theirs?.register(slot)
            // A row that is lost takes with it what others call it: the number by which rows refer to it says nothing
            // elsewhere.
            if column.isReference, [mineRegister, theirRegister].contains(where: { $0?.value.isInteger ?? false }) {
                continue
            }
            // What was set before a delete counts for nothing.
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

/// Which of two values of one stamp stands. Pure.
///
/// One of them was changed behind Martlet's back: a stamp is given to one value only. Whoever gave it knows; where it
/// does not take part, the greater encoding, which is the same one everywhere.
package struct TieRule {
    package let node: NodeID
    package let sender: NodeID
    /// Nodes that were heard of on the topic for checks lately: their word is waited for.
    package var present: Set<NodeID> = []

    package init(node: NodeID, sender: NodeID, present: Set<NodeID> = []) {
        self.node = node
        self.sender = sender
        self.present = present
    }

    /// - Returns: true where the sender's value stands, false where this node's does; nil where another node has to
    ///   say.
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
    /// True for a foreign key to a row that every node knows by its stable ID.
    package var isReference: Bool
    /// True where the column was a reference once, and is none now.
    package var wasReference: Bool

    package init(slot: Int, isReference: Bool, wasReference: Bool) {
        self.slot = slot
        self.isReference = isReference
        self.wasReference = wasReference
    }

    /// True where one of two values, of one stamp, must have been changed behind Martlet's back.
    ///
    /// Not those of a column that was a reference: each node kept the number that the row has there.
    func differ(_ a: Value, _ b: Value) -> Bool { a != b && !(wasReference && a.isInteger && b.isInteger) }
}

extension Value {
    package var isInteger: Bool { if case .integer = self { true } else { false } }
}
