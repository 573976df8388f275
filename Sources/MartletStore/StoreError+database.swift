public import GRDB

extension StoreError {
    /// Creates a store error from an error that GRDB threw. Never contains bound values.
    public init(_ error: DatabaseError) {
        self.init(sqliteCode: error.extendedResultCode.rawValue, message: error.message ?? "SQLite error")
    }
}
