public import GRDB
import GRDBSQLite

/// A compiled statement that is bound and stepped without boxing its values, for writing many rows.
///
/// GRDB's own statements offer more, and are as good for all but the hottest loops. There their boxes are a quarter of
/// the cost (docs/decisions/0003). Create a statement inside ``Store/write(author:context:_:)`` and use it there:
///
///     try store.write(author: "import") { db in
///         let insert = try PreparedStatement(db, "INSERT INTO task(id, title) VALUES (?1, ?2)")
///         for task in tasks {
///             insert.bind(1, blob: task.id)
///             insert.bind(2, text: task.title)
///             try insert.run()
///         }
///     }
///
/// Belongs to the connection on which it was created, and to the thread that holds that connection at the moment.
/// Release it before the connection is closed. GRDB's observation of changes doesn't see its writes.
public final class PreparedStatement {
    // Compiled by GRDB, because GRDB records what a statement touches during any compilation, and accumulates that
    // until it compiles a statement itself.
    private let statement: Statement
    private let handle: OpaquePointer
    private let connection: OpaquePointer
    private let needsTransaction: Bool
    private let kept: BoundBytes
    /// The parameters that SQLite refused to bind, and its codes. They are NULL, or have their former values.
    private var refused: [Int32: Int32] = [:]
    /// The statement's SQL.
    public let sql: String

    /// Compiles one statement.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with SQLite's error.
    public convenience init(_ db: Database, _ sql: String) throws {
        try self.init(db, sql, needsTransaction: true)
    }

    /// - Parameter needsTransaction: Whether to refuse a writing statement outside of a transaction, where it would be
    ///   a transaction of its own.
    package init(_ db: Database, _ sql: String, needsTransaction: Bool) throws {
        guard let connection = db.sqliteConnection else {
            throw StoreError(.sqlite, "The connection is closed.")
        }
        do {
            statement = try db.makeStatement(sql: sql)
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
        handle = statement.sqliteStatement
        self.connection = connection
        kept = BoundBytes(parameters: sqlite3_bind_parameter_count(handle))
        self.needsTransaction = needsTransaction && sqlite3_stmt_readonly(handle) == 0
        self.sql = sql
    }

    // MARK: Binding. Parameters are counted from 1, and keep their values from one run to the next. If SQLite
    // refuses a value, steps fail until the parameter is bound. After a row, call `reset()` before binding.

    public func bind(_ index: Int32, _ value: Int64) {
        check(sqlite3_bind_int64(handle, index, value), index)
    }

    public func bind(_ index: Int32, real value: Double) {
        check(sqlite3_bind_double(handle, index, value), index)
    }

    public func bindNull(_ index: Int32) {
        check(sqlite3_bind_null(handle, index), index)
    }

    private func check(_ code: Int32, _ index: Int32) {
        if code != SQLITE_OK || !refused.isEmpty { refused[index] = code == SQLITE_OK ? nil : code }
    }

    public func bind(_ index: Int32, blob: some Collection<UInt8>) {
        let done: Void? = blob.withContiguousStorageIfAvailable { bindBlob(index, UnsafeRawBufferPointer($0)) }
        if done == nil { bind(index, blob: Array(blob)) }
    }

    /// Binds an array, without the cost of a generic function for another module.
    public func bind(_ index: Int32, blob: [UInt8]) {
        blob.withUnsafeBytes { bindBlob(index, $0) }
    }

    private func bindBlob(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else {
            return check(sqlite3_bind_zeroblob(handle, index, 0), index)
        }
        let kept = kept.keep(bytes, of: index, handle)
        let code = sqlite3_bind_blob64(
            handle, index, kept ?? base, UInt64(bytes.count), kept == nil ? Self.transient : nil)
        check(code, index)
    }

    public func bind(_ index: Int32, text: String) {
        var text = text
        text.withUTF8 { bytes in
            bindText(index, UnsafeRawBufferPointer(bytes))
        }
    }

    private func bindText(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else {
            return check(sqlite3_bind_text(handle, index, "", 0, Self.transient), index)
        }
        let kept = kept.keep(bytes, of: index, handle)
        let code = sqlite3_bind_text64(
            handle, index, (kept ?? base).assumingMemoryBound(to: CChar.self), UInt64(bytes.count),
            kept == nil ? Self.transient : nil, UInt8(SQLITE_UTF8))
        check(code, index)
    }

    /// Binds a value as SQLite stores it. A reference is bound as the bytes of the stable ID.
    public func bind(_ index: Int32, _ value: Value) {
        switch value {
        case .null: bindNull(index)
        case .integer(let value): bind(index, value)
        case .real(let value): bind(index, real: value)
        case .text(let value): bind(index, text: value)
        case .blob(let value): bind(index, blob: value)
        case .rawText(let value): value.withUnsafeBytes { bindText(index, $0) }
        case .reference(let value): bind(index, blob: value.identity.bytes)
        }
    }

    public func bind(_ index: Int32, optional value: Int64?) {
        if let value { bind(index, value) } else { bindNull(index) }
    }

    public func bind(_ index: Int32, optional text: String?) {
        if let text { bind(index, text: text) } else { bindNull(index) }
    }

    // MARK: Running

    /// Advances to the next row. Returns false at the end; then the statement is ready to be bound and run again.
    ///
    /// - Throws: ``/MartletCore/StoreError``. Also if SQLite has refused a bind: the value is larger than SQLite allows
    ///   (1 billion bytes by default), there is no such parameter, or the statement was standing on a row. Steps then
    ///   fail until that parameter is bound; for one that doesn't exist, the next step fails. Also if the statement
    ///   writes and no transaction is open: an earlier error made SQLite roll back, and the write would be committed
    ///   separately.
    public func step() throws -> Bool {
        try checkTransaction()
        try checkBinds()
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE:
            sqlite3_reset(handle)
            return false
        default:
            let error = StoreError(lastOf: connection)
            sqlite3_reset(handle)
            throw error
        }
    }

    private func checkBinds() throws {
        guard let (index, code) = refused.min(by: { $0.key < $1.key }) else { return }
        // A parameter that doesn't exist can't be bound afterwards.
        refused = refused.filter { $0.value != SQLITE_RANGE }
        sqlite3_reset(handle)
        let hint =
            switch code {
            case SQLITE_MISUSE: "The statement stands on a row. Call reset() before binding."
            case SQLITE_RANGE: "The statement has \(sqlite3_bind_parameter_count(handle)) parameters."
            default: ""
            }
        throw StoreError(
            .sqlite, "Parameter \(index) can't be set: \(String(cString: sqlite3_errstr(code))).", hint: hint,
            sqliteCode: code)
    }

    private func checkTransaction() throws {
        guard needsTransaction, sqlite3_get_autocommit(connection) != 0 else { return }
        sqlite3_reset(handle)
        throw StoreError(
            .sqlite, "Nothing can be written outside of a transaction: SQLite has rolled it back, or it has ended.",
            hint: "Let the closure throw the error that made SQLite roll back, and start again.",
            sqliteCode: SQLITE_ABORT)
    }

    /// Runs the statement to the end, and discards its rows.
    ///
    /// - Throws: The errors of ``step()``, with ``/MartletCore/StoreError/sqliteCode`` if SQLite refuses, for example
    ///   because of a constraint.
    public func run() throws {
        while try step() {}
    }

    /// Runs the statement until its first row or its end.
    ///
    /// - Returns: False if the table refuses the row (``/MartletCore/StoreError/refusesRow``). Then nothing was
    ///   changed.
    package func runUnlessConstrained() throws -> Bool {
        do {
            if try step() { reset() }
            return true
        } catch let error as StoreError where error.refusesRow {
            return false
        }
    }

    /// The rowid of the row that the connection last inserted into a table with rowids.
    package var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(connection) }

    /// Stops the statement before its end, so that it leaves no read open.
    public func reset() {
        sqlite3_reset(handle)
    }

    /// Returns the result of `read` for the first row, or nil if there is no row.
    @inlinable public func first<T>(_ read: (PreparedStatement) throws -> T) throws -> T? {
        guard try step() else { return nil }
        defer { reset() }
        return try read(self)
    }

    /// The number of rows that the last run changed.
    public var changes: Int32 { sqlite3_changes(connection) }

    // MARK: Columns. Counted from 0, valid until the next step.

    public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    public func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    public func blob(_ column: Int32) -> [UInt8] {
        guard let base = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: base, count: Int(sqlite3_column_bytes(handle, column))))
    }

    /// Calls `body` with SQLite's own bytes, which are valid only during the call. NULL has none.
    package func withBlob<T>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
        let base = sqlite3_column_blob(handle, column)
        return try body(
            UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : Int(sqlite3_column_bytes(handle, column))))
    }

    public func optionalBlob(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : blob(column) }

    public func text(_ column: Int32) -> String {
        guard let base = sqlite3_column_text(handle, column) else { return "" }
        let bytes = UnsafeBufferPointer(start: base, count: Int(sqlite3_column_bytes(handle, column)))
        return String(decoding: bytes, as: UTF8.self)
    }

    public func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    public func value(_ column: Int32) -> Value {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, column))
        // Make -0.0 into 0.0: SQLite treats them as equal, so no trigger sees one become the other.
        case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, column) + 0)
        case SQLITE_TEXT:
            guard let base = sqlite3_column_text(handle, column) else { return .text("") }
            let bytes = UnsafeBufferPointer(start: base, count: Int(sqlite3_column_bytes(handle, column)))
            let text = String(decoding: bytes, as: UTF8.self)
            return text.isUnrepaired(UnsafeRawBufferPointer(bytes)) ? .text(text) : .rawText(Array(bytes))
        case SQLITE_BLOB: return .blob(blob(column))
        default: return .null
        }
    }

    /// Returns the value without copying its bytes, which are valid until the next step.
    package func borrowed(_ column: Int32) -> BorrowedValue {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, column))
        // See ``value(_:)``.
        case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, column) + 0)
        case SQLITE_TEXT:
            let base = sqlite3_column_text(handle, column)
            let bytes = UnsafeRawBufferPointer(
                start: base, count: base == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
            return bytes.isUTF8 ? .text(bytes) : .rawText(bytes)
        case SQLITE_BLOB:
            let base = sqlite3_column_blob(handle, column)
            return .blob(
                UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : Int(sqlite3_column_bytes(handle, column))))
        default: return .null
        }
    }

    // SQLite copies what it is given before the bind call returns.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}

extension String {
    /// Returns whether the text still has the bytes that it was decoded from. Invalid UTF-8 is repaired, and then
    /// differs. This is faster than `String(validating:as:)`.
    fileprivate func isUnrepaired(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var text = self
        return text.withUTF8 { UnsafeRawBufferPointer($0).areEqual(to: bytes) }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var isUTF8: Bool {
        if allSatisfy({ $0 < 0x80 }) { return true }
        return String(decoding: self, as: UTF8.self).isUnrepaired(self)
    }
}

extension StoreError {
    /// Creates an error from the last error of an SQLite connection.
    init(lastOf connection: OpaquePointer?) {
        self.init(
            sqliteCode: sqlite3_extended_errcode(connection), message: String(cString: sqlite3_errmsg(connection)))
    }
}

/// A cache of compiled statements for one connection.
///
/// Confined to its connection, like the statements in it.
package final class StatementCache {
    private static let limit = 500
    private var statements: [String: PreparedStatement] = [:]

    package init() {}

    package func callAsFunction(_ db: Database, _ sql: String) throws -> PreparedStatement {
        if let statement = statements[sql] { return statement }
        // SQL that a program generates on the fly would make the cache grow without bound.
        if statements.count >= Self.limit { statements.removeAll() }
        let statement = try PreparedStatement(db, sql)
        statements[sql] = statement
        return statement
    }

    /// Empties the cache, after the schema has changed.
    package func removeAll() { statements.removeAll() }
}
