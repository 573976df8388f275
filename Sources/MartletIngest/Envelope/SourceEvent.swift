package import MartletCore

/// A change of a row at the source, as a record of Debezium tells it.
package struct SourceEvent: Sendable, Equatable {
    package enum Operation: Sendable, Equatable {
        /// `c`: the row was inserted.
        case create
        /// `r`: the row was there when the connector read the table.
        case read
        /// `u`: the row was updated.
        case update
        /// `d`: the row was deleted.
        case delete
        /// A record with a key and no value: the tombstone that follows a delete, or a delete by itself.
        case null
    }

    package var operation: Operation
    /// The values of the record's key, by column of the table. Never empty.
    package var key: [String: Value]
    /// The row before the change, by column of the table. Nil if the source did not send it. A column that it did not
    /// send is left out.
    package var before: [String: Value]?
    /// The row after the change, by column of the table, with all columns of the key. A column that the source did not
    /// send, because it is large and did not change, is left out. Nil for deletes.
    package var after: [String: Value]?
    /// When the source made the change, in milliseconds since 1970. Nil if it did not say so, or not believably.
    package var milliseconds: Int64?
    /// Where the change is in the source's log. Nil if the connector does not tell it in a form that can be compared.
    package var position: SourcePosition?

    package init(
        operation: Operation, key: [String: Value], before: [String: Value]? = nil, after: [String: Value]? = nil,
        milliseconds: Int64? = nil, position: SourcePosition? = nil
    ) {
        self.operation = operation
        self.key = key
        self.before = before
        self.after = after
        self.milliseconds = milliseconds
        self.position = position
    }
}
