package import MartletCore
package import MartletStore

/// A change of a row with the whole row after it, as systems outside need it.
package struct RowChange {
    /// The row's number and values, by slot, in the form that every node understands.
    package struct Row: Equatable {
        package var number: Int64?
        package var values: [Int: Value]
    }

    package var entity: Entity
    package var identity: StableID
    package var kind: ChangeKind
    /// The row before an update or a delete, if the table keeps old values. Before any other delete: the values of its
    /// identity.
    package var before: Row?
    /// Nil for a delete.
    package var after: Row?
    /// The newest stamp that the row has today, that of its delete included.
    package var stamp: Stamp?
    /// When it was changed, in milliseconds since 1970.
    package var time: Int64
}

/// A transaction of the history, or a part of it.
package struct RowTransaction {
    /// The ID of its mark in the log.
    package var mark: Int64
    package var time: Int64
    package var author: String?
    /// The node that made it, and its number there. Nil for what this node did by itself, without publishing anything.
    package var origin: (node: NodeID, name: String?, sequence: Int64)?
    package var changes: [RowChange]
    /// False if the rest of its changes follows.
    package var isComplete: Bool
}

/// A place in the log between two changes.
package struct RowChangePlace: Equatable, Sendable {
    /// The mark of the last transaction that was read to its end.
    package var mark: Int64
    /// The first change to read of the transaction after it, and the mark of that one. Nil: all of its changes.
    package var open: Open?

    package struct Open: Equatable, Sendable {
        package var change: Int64
        package var mark: Int64
    }

    package init(mark: Int64) { self.mark = mark }
}
