package import GRDB

/// What an agent keeps of the history, beside what cursors keep. The agent records it in the store, for `status` and
/// `doctor`.
package struct HistoryBounds: Sendable, Equatable {
    /// Older transactions are deleted. Nil: none, however old.
    package var age: Duration?
    /// The oldest transactions are deleted while the log is larger. Nil: none, however large.
    package var sizeBytes: Int64?

    package init(age: Duration? = nil, sizeBytes: Int64? = nil) {
        self.age = age
        self.sizeBytes = sizeBytes
    }

    /// Returns what was recorded. Nil if no agent has recorded anything yet.
    package static func load(_ db: Database) throws -> HistoryBounds? {
        guard let age = try Meta.integer(db, MetaKey.historyAge), let size = try Meta.integer(db, MetaKey.historyBytes)
        else { return nil }
        return HistoryBounds(
            age: age > 0 ? .milliseconds(min(age, Duration.maxMilliseconds)) : nil, sizeBytes: size > 0 ? size : nil)
    }

    /// Records the bounds, unless they are the recorded ones.
    package func record(_ db: Database) throws {
        let milliseconds = age.map { max(1, $0.wholeMilliseconds) } ?? 0
        for (key, value) in [(MetaKey.historyAge, milliseconds), (MetaKey.historyBytes, sizeBytes ?? 0)] {
            if try Meta.integer(db, key) != value { try Meta.set(db, key, value) }
        }
    }
}
