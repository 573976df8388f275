/// Which transactions of the history to fetch.
public struct HistoryDescriptor<TransactionType: HistoryTransaction> {
    /// All transactions where there is none.
    public var predicate: Predicate<TransactionType>?
    /// Oldest first where it is empty.
    public var sortBy: [SortDescriptor<TransactionType>]
    /// The most transactions to fetch. 0, the default: all.
    public var fetchLimit: UInt64 = 0

    public init(predicate: Predicate<TransactionType>? = nil, sortBy: [SortDescriptor<TransactionType>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}
