public import GRDB

extension StoreError {
    /// The same, for an error that GRDB threw. Never holds bound values.
    public init(_ error: DatabaseError) {
        self.init(sqliteCode: error.extendedResultCode.rawValue, message: error.message ?? "SQLite error")
    }
}
