/// An error of a store.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of error. Compare it with the constants; later versions may add more.
    public struct Code: Hashable, Sendable, RawRepresentable {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The file does not exist, or is not a store yet.
        public static let notAStore = Code(rawValue: "notAStore")
        /// The file is not an SQLite database, or its contents are inconsistent.
        public static let corrupt = Code(rawValue: "corrupt")
        /// The store was written by a newer version.
        public static let newerVersion = Code(rawValue: "newerVersion")
        /// The table can't be tracked in its present form.
        public static let notTrackable = Code(rawValue: "notTrackable")
        /// The history that a token refers to has been deleted, or belongs to another store.
        public static let historyTokenExpired = Code(rawValue: "historyTokenExpired")
        /// The file or its folder is not writable.
        public static let readOnly = Code(rawValue: "readOnly")
        /// No space is left on the device.
        public static let diskFull = Code(rawValue: "diskFull")
        /// Another connection held the write lock longer than the busy timeout.
        public static let busy = Code(rawValue: "busy")
        /// Another agent runs on this store.
        public static let locked = Code(rawValue: "locked")
        /// The store has the identity of another store: it is a copy, or was restored from a backup.
        public static let copied = Code(rawValue: "copied")
        /// The file was moved, deleted or replaced while it was open.
        public static let moved = Code(rawValue: "moved")
        /// The store was used inside a closure that already holds its connection.
        public static let nestedUse = Code(rawValue: "nestedUse")
        /// An argument is invalid.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// Any other SQLite error.
        public static let sqlite = Code(rawValue: "sqlite")
    }

    public var code: Code
    public var message: String
    /// The operator's next step.
    public var hint: String
    /// SQLite's extended result code, where SQLite reported the error.
    public var sqliteCode: Int32?
    /// True if the same call may succeed later without anyone's intervention.
    public var isRetriable: Bool { code == .busy }
    /// True if only a lock or a full disk was in the way: says nothing about what was called.
    package var isTransient: Bool { isRetriable || code == .diskFull }

    /// True if SQLite rejected the values or the table itself, rather than failing for lack of a lock, of space or of
    /// an intact file. Other rows may still succeed. Covers constraints, CHECK expressions or generated columns that
    /// can't be evaluated, values that are too long, and integer keys that are not integers.
    package var refusesRow: Bool { [1, 18, 19, 20].contains((sqliteCode ?? 0) & 0xff) }

    /// True if another row already has the key: `SQLITE_CONSTRAINT_UNIQUE`, `_PRIMARYKEY` or `_ROWID`.
    package var isUniqueKey: Bool { [2067, 1555, 2579].contains(sqliteCode) }

    public init(_ code: Code, _ message: String, hint: String = "", sqliteCode: Int32? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
        self.sqliteCode = sqliteCode
    }

    /// Creates an error from an SQLite result code. It never contains bound values.
    public init(sqliteCode: Int32, message: String) {
        let code: Code
        var hint = ""
        switch sqliteCode & 0xff {
        case 5, 6:
            code = .busy
            hint = "Another program holds the write lock. Try again, or raise the busy timeout."
        case 8, 14:
            code = .readOnly
            hint = "Check who owns the file and its folder: SQLite writes -wal and -shm files beside it."
        case 11, 26:
            code = .corrupt
            hint = "Restore the file together with its -wal file, or start from a new copy of another node."
        case 13:
            code = .diskFull
            hint = "Free some space. Nothing was lost: the transaction was rolled back."
        default: code = .sqlite
        }
        self.init(code, message, hint: hint, sqliteCode: sqliteCode)
    }

    public var description: String {
        var text = message
        if let sqliteCode { text += " (SQLite code \(sqliteCode))" }
        if !hint.isEmpty { text += " \(hint)" }
        return text
    }
}
