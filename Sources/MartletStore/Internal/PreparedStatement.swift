public import GRDB
import GRDBSQLite

/// A compiled statement that is bound and stepped without boxing its values, for writing many rows.
///
/// GRDB's own statements do more for their user, and are as good for all but the hottest loops: there their boxes are a
/// quarter of the cost (docs/decisions/0003). Make one inside ``Store/write(author:context:_:)`` and use it there:
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
/// Belongs to the connection that it was made on, and to whatever thread has that connection at the moment. Let go of
/// it before the connection is closed. GRDB's observation of changes is not told of what it does.
public final class PreparedStatement {
    // Compiled by GRDB: it notes what a statement touches meanwhile, and adds that up until it compiles one itself.
    private let statement: Statement
    private let handle: OpaquePointer
    private let connection: OpaquePointer
    private let needsTransaction: Bool
    /// The statement's text.
    public let sql: String

    /// Compiles one statement.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with SQLite's reason.
    public convenience init(_ db: Database, _ sql: String) throws {
        try self.init(db, sql, needsTransaction: true)
    }

    /// - Parameter needsTransaction: whether the statement is refused where it would be a transaction of its own, if it
    ///   writes.
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
        self.needsTransaction = needsTransaction && sqlite3_stmt_readonly(handle) == 0
        self.sql = sql
    }

    // MARK: Binding. Parameters are counted from 1, and keep what they were bound to from one run to the next.

    public func bind(_ index: Int32, _ value: Int64) {
        sqlite3_bind_int64(handle, index, value)
    }

    public func bind(_ index: Int32, real value: Double) {
        sqlite3_bind_double(handle, index, value)
    }

    public func bindNull(_ index: Int32) {
        sqlite3_bind_null(handle, index)
    }

    public func bind(_ index: Int32, blob: some Collection<UInt8>) {
        let done: Void? = blob.withContiguousStorageIfAvailable { bindBlob(index, UnsafeRawBufferPointer($0)) }
        if done == nil { bind(index, blob: Array(blob)) }
    }

    /// The same for an array, without what a generic function costs another module.
    public func bind(_ index: Int32, blob: [UInt8]) {
        blob.withUnsafeBytes { bindBlob(index, $0) }
    }

    private func bindBlob(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        if let base = bytes.baseAddress, !bytes.isEmpty {
            sqlite3_bind_blob64(handle, index, base, UInt64(bytes.count), Self.transient)
        } else {
            sqlite3_bind_zeroblob(handle, index, 0)
        }
    }

    public func bind(_ index: Int32, text: String) {
        var text = text
        text.withUTF8 { bytes in
            bindText(index, UnsafeRawBufferPointer(bytes))
        }
    }

    private func bindText(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        if let base = bytes.baseAddress {
            sqlite3_bind_text64(
                handle, index, base.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), Self.transient,
                UInt8(SQLITE_UTF8))
        } else {
            sqlite3_bind_text(handle, index, "", 0, Self.transient)
        }
    }

    /// Binds a value as SQLite holds it. A reference is bound as the stable ID's bytes.
    public func bind(_ index: Int32, _ value: Value) {
        switch value {
        case .null: sqlite3_bind_null(handle, index)
        case .integer(let value): sqlite3_bind_int64(handle, index, value)
        case .real(let value): sqlite3_bind_double(handle, index, value)
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

    /// Takes the next row. Returns false at the end, and then the statement is ready to be bound and run again.
    ///
    /// - Throws: ``/MartletCore/StoreError``, also where the statement writes and no transaction is open: an error
    ///   before made SQLite roll it back, and what is written now would be kept by itself.
    public func step() throws -> Bool {
        try checkTransaction()
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

    private func checkTransaction() throws {
        guard needsTransaction, sqlite3_get_autocommit(connection) != 0 else { return }
        sqlite3_reset(handle)
        throw StoreError(
            .sqlite, "Nothing can be written outside of a transaction: SQLite has rolled it back, or it has ended.",
            hint: "Let the closure throw the error that made SQLite roll back, and start again.",
            sqliteCode: SQLITE_ABORT)
    }

    /// Runs to the end, and throws the rows away.
    ///
    /// - Throws: as ``step()``; with ``/MartletCore/StoreError/sqliteCode`` where SQLite refuses, for example for a
    ///   constraint.
    public func run() throws {
        while try step() {}
    }

    /// Runs to the end.
    ///
    /// - Returns: false where the table refuses it (``/MartletCore/StoreError/refusesRow``); nothing was changed then.
    package func runUnlessConstrained() throws -> Bool {
        try checkTransaction()
        let code = sqlite3_step(handle)
        sqlite3_reset(handle)
        switch code & 0xff {
        case SQLITE_DONE, SQLITE_ROW: return true
        default:
            let error = StoreError(lastOf: connection)
            guard error.refusesRow else { throw error }
            return false
        }
    }

    /// The rowid of the row that the connection inserted last, into a table that has one.
    package var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(connection) }

    /// Stops before the end, so that no read is left open.
    public func reset() {
        sqlite3_reset(handle)
    }

    /// The first row through `read`, or nil where there is none.
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

    /// The bytes as SQLite has them, valid during `body`. NULL has none.
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
        // SQLite takes -0.0 and 0.0 for one, so that no trigger sees one become the other.
        case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, column) + 0)
        case SQLITE_TEXT:
            guard let base = sqlite3_column_text(handle, column) else { return .text("") }
            let bytes = UnsafeBufferPointer(start: base, count: Int(sqlite3_column_bytes(handle, column)))
            // What is not UTF-8 is repaired, and then it is not the same any more. `String(validating:as:)` takes
            // longer.
            var text = String(decoding: bytes, as: UTF8.self)
            return text.withUTF8 { UnsafeRawBufferPointer($0).areEqual(to: UnsafeRawBufferPointer(bytes)) }
                ? .text(text) : .rawText(Array(bytes))
        case SQLITE_BLOB: return .blob(blob(column))
        default: return .null
        }
    }

    // SQLite copies what it is given before the bind call returns.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}

extension StoreError {
    /// What went wrong last on a connection of SQLite.
    init(lastOf connection: OpaquePointer?) {
        self.init(
            sqliteCode: sqlite3_extended_errcode(connection), message: String(cString: sqlite3_errmsg(connection)))
    }
}

/// The statements of one connection that are worth keeping compiled.
///
/// Confined to its connection, like the statements in it.
package final class StatementCache {
    private static let limit = 500
    private var statements: [String: PreparedStatement] = [:]

    package init() {}

    package func callAsFunction(_ db: Database, _ sql: String) throws -> PreparedStatement {
        if let statement = statements[sql] { return statement }
        // Texts that a program makes up as it goes would grow without end.
        if statements.count >= Self.limit { statements.removeAll() }
        let statement = try PreparedStatement(db, sql)
        statements[sql] = statement
        return statement
    }

    /// Forgets everything, for when the schema changed.
    package func removeAll() { statements.removeAll() }
}
