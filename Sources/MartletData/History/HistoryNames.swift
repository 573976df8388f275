/// Former names of the history types, so that older code compiles.
public enum History {
    public typealias HistoryDescriptor = MartletData.HistoryDescriptor
    public typealias DefaultToken = DefaultHistoryToken
    public typealias DefaultTransaction = DefaultHistoryTransaction
    public typealias DefaultInsertChange = DefaultHistoryInsert
    public typealias DefaultUpdateChange = DefaultHistoryUpdate
    public typealias DefaultDeleteChange = DefaultHistoryDelete
}
