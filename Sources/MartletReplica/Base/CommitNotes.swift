package import GRDB
package import MartletCore
import MartletStore

/// What a transaction of the engine writes to `_martlet_meta` when it ends: read offsets, the clock, and how far
/// changes are stamped.
///
/// One statement writes all of it: the values are on the same page, and most of the cost of a change there is that of
/// beginning and ending a statement.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class CommitNotes {
    private enum Content {
        case integer(Int64)
        case blob([UInt8])
    }

    private struct Note {
        var key: String
        var content: Content
        var origin: NodeID?
        var sequence: Int64?
        var at: Int64?
    }

    /// How many notes one statement takes.
    private static let maxCount = 8

    private var notes: [Note] = []
    /// By the number of notes, less one.
    private var statements = [PreparedStatement?](repeating: nil, count: maxCount)

    /// Adds a note. The last one of a key wins.
    package func add(_ key: String, _ value: Int64, origin: NodeID? = nil, sequence: Int64? = nil, at: Int64? = nil) {
        notes.append(Note(key: key, content: .integer(value), origin: origin, sequence: sequence, at: at))
    }

    package func add(_ key: String, blob: [UInt8]) {
        notes.append(Note(key: key, content: .blob(blob)))
    }

    /// Removes the notes under these keys.
    package func remove(_ keys: [String]) {
        notes.removeAll { keys.contains($0.key) }
    }

    /// Writes the notes, and clears them.
    package func write(_ db: Database) throws {
        var rest = notes[...]
        while !rest.isEmpty {
            try write(db, rest.prefix(Self.maxCount))
            rest = rest.dropFirst(Self.maxCount)
        }
        notes.removeAll(keepingCapacity: true)
    }

    private func write(_ db: Database, _ notes: ArraySlice<Note>) throws {
        let save = try kept(&statements[notes.count - 1], db, Self.save(notes.count))
        var parameter: Int32 = 1
        for note in notes {
            save.bind(parameter, text: note.key)
            switch note.content {
            case .integer(let value): save.bind(parameter + 1, value)
            case .blob(let value): save.bind(parameter + 1, blob: value)
            }
            if let origin = note.origin {
                save.bind(parameter + 2, blob: origin.bytes)
            } else {
                save.bindNull(parameter + 2)
            }
            save.bind(parameter + 3, optional: note.sequence)
            save.bind(parameter + 4, optional: note.at)
            parameter += 5
        }
        try save.run()
    }

    /// FAIL, since no constraint can be violated: with ABORT, SQLite would first copy what it may have to restore.
    private static func save(_ count: Int) -> String {
        """
        INSERT OR FAIL INTO \(InternalName.meta)(key, value, origin, sequence, at)
        VALUES \([String](repeating: "(?, ?, ?, ?, ?)", count: count).joined(separator: ", "))
        ON CONFLICT DO UPDATE SET value = excluded.value, origin = excluded.origin, sequence = excluded.sequence,
        at = excluded.at
        """
    }
}
