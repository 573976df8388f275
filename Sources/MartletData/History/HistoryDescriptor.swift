/// Which transactions of the history to fetch.
public struct HistoryDescriptor<T: HistoryTransaction> {
    /// All transactions where there is none.
    public var predicate: Predicate<T>?
    /// Oldest first where it is empty.
    public var sortBy: [SortDescriptor<T>]
    /// The most transactions to fetch. Absent: all.
    public var fetchLimit: Int?

    public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}
