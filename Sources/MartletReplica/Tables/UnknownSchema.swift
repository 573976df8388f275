/// The reason why a change can't be understood here yet.
package struct UnknownSchema: Error {
    package var detail: String
    /// True if this store has such a table or column, and a filter of this node leaves it out.
    package var isFiltered = false

    package init(detail: String, isFiltered: Bool = false) {
        self.detail = detail
        self.isFiltered = isFiltered
    }
}
