package import GRDB

/// How a file holds text: fixed when it is made (`PRAGMA encoding`).
package enum TextEncoding: Sendable {
    /// Text is whatever bytes were written.
    case utf8
    /// Text is UTF-16. What is not valid UTF-8 becomes something else on its way in, and two values may become one.
    case utf16

    package init(_ db: Database) throws {
        self = try String.fetchOne(db, sql: "PRAGMA encoding") == "UTF-8" ? .utf8 : .utf16
    }

    /// True for a value that comes back as it was written.
    package func holds(_ value: Value) -> Bool {
        guard self == .utf16, case .rawText = value else { return true }
        return false
    }

    /// The error for a value that does not, as a constraint of the table: the row waits, like one that a `CHECK` refuses.
    package static let refusal = StoreError(
        sqliteCode: 19, message: "text that is not valid UTF-8 can't be held in a database whose encoding is UTF-16")
}
