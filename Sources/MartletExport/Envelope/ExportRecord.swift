package import MartletCore

/// A change of a row on its way to the table's topic.
package struct ExportRecord: Sendable {
    package enum Operation: String, Sendable {
        case create = "c"
        case update = "u"
        case delete = "d"
        /// The row was read, and no change is behind it.
        case read = "r"
    }

    /// The row's number and values, by the slot of their column.
    package struct Row: Sendable {
        package var number: Int64?
        package var values: [Int: Value]

        package init(number: Int64?, values: [Int: Value]) {
            self.number = number
            self.values = values
        }
    }

    package var identity: StableID
    package var operation: Operation
    /// Before a delete, if the values are not kept: those of the identity.
    package var before: Row?
    package var after: Row?
    /// The newest stamp of the row.
    package var stamp: Stamp?
    /// When the row was changed, in milliseconds since 1970.
    package var time: Int64

    package init(
        identity: StableID, operation: Operation, before: Row? = nil, after: Row? = nil, stamp: Stamp?, time: Int64
    ) {
        self.identity = identity
        self.operation = operation
        self.before = before
        self.after = after
        self.stamp = stamp
        self.time = time
    }
}

/// The transaction that changes belong to, as records name it.
package struct ExportTransaction: Sendable, Equatable {
    /// Identifies the transaction on every node.
    package var id: String
    /// When it was made, in milliseconds since 1970.
    package var time: Int64
    package var author: String?
    /// The node that made it. Nil for what a node did by itself, such as loading a snapshot.
    package var origin: NodeID?
    package var originName: String?
    /// The number that the origin gave it.
    package var sequence: Int64?

    package init(
        id: String, time: Int64, author: String?, origin: NodeID?, originName: String?, sequence: Int64?
    ) {
        self.id = id
        self.time = time
        self.author = author
        self.origin = origin
        self.originName = originName
        self.sequence = sequence
    }
}

/// The place of a record within its transaction, counted from 1.
package struct ExportOrder: Sendable, Equatable {
    package var total: Int64
    package var inTable: Int64

    package init(total: Int64, inTable: Int64) {
        self.total = total
        self.inTable = inTable
    }
}
