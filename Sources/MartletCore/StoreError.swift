/// What went wrong in a store.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of error it is. Compare with the constants; more may be added.
    public struct Code: Hashable, Sendable, RawRepresentable {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The file is not there, or is no store yet.
        public static let notAStore = Code(rawValue: "notAStore")
        /// The file is not an SQLite database, or what is in it contradicts itself.
        public static let corrupt = Code(rawValue: "corrupt")
        /// The store was written by a newer version.
        public static let newerVersion = Code(rawValue: "newerVersion")
        /// The table can't be tracked as it is.
        public static let notTrackable = Code(rawValue: "notTrackable")
        /// The history that a token names is gone, or belongs to another store.
        public static let historyTokenExpired = Code(rawValue: "historyTokenExpired")
        /// The file or its folder may not be written.
        public static let readOnly = Code(rawValue: "readOnly")
        /// No space is left on the device.
        public static let diskFull = Code(rawValue: "diskFull")
        /// Another connection held the write lock longer than the busy timeout.
        public static let busy = Code(rawValue: "busy")
        /// Another agent runs on this store.
        public static let locked = Code(rawValue: "locked")
        /// The store goes under the name of another one: it is a copy, or was restored from a backup.
        public static let copied = Code(rawValue: "copied")
        /// The file was moved, deleted or replaced while it was open.
        public static let moved = Code(rawValue: "moved")
        /// The store is used inside of a closure that has its connection.
        public static let nestedUse = Code(rawValue: "nestedUse")
        /// An argument makes no sense.
        public static let invalidArgument = Code(rawValue: "invalidArgument")
        /// Any other error of SQLite.
        public static let sqlite = Code(rawValue: "sqlite")
    }

    public var code: Code
    public var message: String
    /// What an operator can do about it.
    public var hint: String
    /// SQLite's extended result code, where SQLite reported the error.
    public var sqliteCode: Int32?
    /// True when the same call may succeed later, without anybody doing anything.
    public var isRetriable: Bool { code == .busy }

    /// True where SQLite refused the values or the table, and not for want of a lock, room or a whole file: another row
    /// may do as well as ever. A constraint, a CHECK or a generated column that can't be worked out, a value that is
    /// too long, an integer key that is none.
    package var refusesRow: Bool { [1, 18, 19, 20].contains((sqliteCode ?? 0) & 0xff) }

    /// True where another row has a key: `SQLITE_CONSTRAINT_UNIQUE`, `_PRIMARYKEY` or `_ROWID`.
    package var isUniqueKey: Bool { [2067, 1555, 2579].contains(sqliteCode) }

    public init(_ code: Code, _ message: String, hint: String = "", sqliteCode: Int32? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
        self.sqliteCode = sqliteCode
    }

    /// An error of SQLite in the terms of this library. Never holds bound values.
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
