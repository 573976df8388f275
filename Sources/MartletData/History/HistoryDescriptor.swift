/// Describes which transactions of the history to fetch.
public struct HistoryDescriptor<TransactionType: HistoryTransaction> {
    /// The condition. Nil fetches all transactions.
    public var predicate: Predicate<TransactionType>?
    /// The order. If empty, the oldest come first.
    public var sortBy: [SortDescriptor<TransactionType>]
    /// The maximum number of transactions to fetch. 0, the default, is no limit.
    public var fetchLimit: UInt64 = 0

    public init(predicate: Predicate<TransactionType>? = nil, sortBy: [SortDescriptor<TransactionType>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}
