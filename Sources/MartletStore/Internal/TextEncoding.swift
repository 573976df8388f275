package import GRDB

/// The text encoding of a file, which is fixed when it is created (`PRAGMA encoding`).
package enum TextEncoding: Sendable {
    /// Text keeps the bytes that were written.
    case utf8
    /// Text is UTF-16. Invalid UTF-8, U+FFFE and U+FFFF are stored as U+FFFD, so two different values may become equal.
    case utf16

    package init(_ db: Database) throws {
        self = try String.fetchOne(db, sql: "PRAGMA encoding") == "UTF-8" ? .utf8 : .utf16
    }

    /// Returns whether the file stores the value unchanged.
    package func holds(_ value: Value) -> Bool {
        guard self == .utf16 else { return true }
        switch value {
        case .rawText: return false
        // SQLite reads these two as byte order marks (`READ_UTF8` in utf.c).
        case .text(let text): return !text.unicodeScalars.contains { $0 == "\u{fffe}" || $0 == "\u{ffff}" }
        default: return true
        }
    }

    /// The error for a value that the file can't store, in the form of a constraint failure: the change stays pending,
    /// like one that a `CHECK` refuses.
    package static let refusal = StoreError(
        sqliteCode: 19,
        message: """
            text that is not valid UTF-8, or has U+FFFE or U+FFFF, can't be held in a database whose encoding is UTF-16
            """)
}
