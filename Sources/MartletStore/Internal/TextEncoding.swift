package import GRDB

/// How a file holds text: fixed when it is made (`PRAGMA encoding`).
package enum TextEncoding: Sendable {
    /// Text is whatever bytes were written.
    case utf8
    /// Text is UTF-16. What is not valid UTF-8, and U+FFFE and U+FFFF, become U+FFFD on their way in, and two values
    /// may become one.
    case utf16

    package init(_ db: Database) throws {
        self = try String.fetchOne(db, sql: "PRAGMA encoding") == "UTF-8" ? .utf8 : .utf16
    }

    /// True for a value that comes back as it was written.
    package func holds(_ value: Value) -> Bool {
        guard self == .utf16 else { return true }
        switch value {
        case .rawText: return false
        // SQLite takes these two for byte order marks (`READ_UTF8` in utf.c).
        case .text(let text): return !text.unicodeScalars.contains { $0 == "\u{fffe}" || $0 == "\u{ffff}" }
        default: return true
        }
    }

    /// The error for a value that does not, as a constraint of the table: the row waits, like one that a `CHECK`
    /// refuses.
    package static let refusal = StoreError(
        sqliteCode: 19,
        message:
            "text that is not valid UTF-8, or has U+FFFE or U+FFFF, can't be held in a database whose encoding is UTF-16"
    )
}
