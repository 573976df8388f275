package import GRDB
import MartletCore
import MartletStore

/// What the log says of the integer keys of one table's rows, by key, so that a question about one row doesn't read the
/// whole log.
///
/// Reads each row of the log once, and follows the log as it grows. Confined to its connection.
package struct KeyEvents {
    package struct Event {
        package enum Kind {
            case inserted, deleted
            /// The row left the key for another one. The event has the ID of the state before, which is one less than
            /// that of the update.
            case left(Int64)
            /// The row that had another key took this one.
            case arrived(Int64)
        }

        package var id: Int64
        package var kind: Kind

        /// True if a row has the key from then on.
        package var isBeginning: Bool {
            switch kind {
            case .inserted, .arrived: true
            case .deleted, .left: false
            }
        }
    }

    private let entity: Int64
    private var through: Int64
    /// Ascending by ID.
    private var events: [Int64: [Event]] = [:]
    /// The log IDs that show the identity of the row with this key, before or after a change. Ascending.
    private var images: [Int64: [Int64]] = [:]

    package init(_ entity: Int64, after first: Int64) {
        self.entity = entity
        through = first
    }

    package mutating func read(_ db: Database, through end: Int64) throws {
        guard end > through else { return }
        let read = try PreparedStatement(
            db,
            """
            SELECT id, r, k FROM \(InternalName.log) WHERE id > ?1 AND id <= ?2 AND e = ?3 AND r IS NOT NULL
            AND k IN (\(ChangeKind.insert.code), \(ChangeKind.update.code),
            \(ChangeKind.delete.code), \(ChangeKind.Mark.before))
            ORDER BY id
            """)
        read.bind(1, through)
        read.bind(2, end)
        read.bind(3, entity)
        var before: (id: Int64, row: Int64)?
        while try read.step() {
            let (id, row) = (read.integer(0), read.integer(1))
            switch read.integer(2) {
            case ChangeKind.Mark.before:
                before = (id, row)
                images[row, default: []].append(id)
                continue
            case ChangeKind.insert.code:
                events[row, default: []].append(Event(id: id, kind: .inserted))
                images[row, default: []].append(id)
            case ChangeKind.delete.code:
                events[row, default: []].append(Event(id: id, kind: .deleted))
                images[row, default: []].append(id)
            default:
                if let before, before.id == id - 1, before.row != row {
                    dropEarlyImages(of: row)
                    events[before.row, default: []].append(Event(id: before.id, kind: .left(row)))
                    events[row, default: []].append(Event(id: id, kind: .arrived(before.row)))
                }
                images[row, default: []].append(id)
            }
            before = nil
        }
        through = end
    }

    /// Drops images from before a row takes this key: changes under the key while it was free belong to the same row.
    /// They come from foreign-key actions that the move triggered, which are in the log before the move.
    private mutating func dropEarlyImages(of row: Int64) {
        let last = events[row]?.last
        switch last?.kind {
        case .inserted, .arrived: return
        case .deleted, .left, nil: images[row]?.removeAll { $0 > last?.id ?? 0 }
        }
    }

    /// Returns the key's events between these log IDs, both excluded.
    package func events(of row: Int64, after first: Int64, before end: Int64 = .max) -> ArraySlice<Event> {
        let all = events[row] ?? []
        let begin = all.partition { $0.id > first }
        return all[begin..<max(begin, all.partition { $0.id >= end })]
    }

    /// Returns the first log ID after this one that shows the identity of a row with the key.
    package func image(of row: Int64, after first: Int64) -> Int64? {
        let all = images[row] ?? []
        let index = all.partition { $0 > first }
        return index < all.count ? all[index] : nil
    }
}

extension Array {
    /// Returns the first index whose element satisfies the condition, which all later elements must satisfy, too.
    fileprivate func partition(_ isAfter: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
