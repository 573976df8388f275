/// A row in this file: its table, and its integer key there.
package struct RowKey: Hashable, Sendable {
    package var entity: Int64
    package var row: Int64

    package init(entity: Int64, row: Int64) {
        self.entity = entity
        self.row = row
    }
}
