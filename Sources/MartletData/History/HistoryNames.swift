/// The names that types of the history had before they were what they are now: code of that time compiles.
public enum History {
    public typealias HistoryDescriptor = MartletData.HistoryDescriptor
    public typealias DefaultToken = DefaultHistoryToken
    public typealias DefaultTransaction = DefaultHistoryTransaction
    public typealias DefaultInsertChange = DefaultHistoryInsert
    public typealias DefaultUpdateChange = DefaultHistoryUpdate
    public typealias DefaultDeleteChange = DefaultHistoryDelete
}
