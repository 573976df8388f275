import Foundation
package import GRDB
import MartletCore
import MartletStore

/// How far a node has exported, as its store knows it. Another node's store knows nothing of it.
///
/// The place in the history is a named cursor, so that history that is still to be exported is not deleted.
package struct ExportPosition: Equatable, Sendable, Codable {
    /// The term under which this node last exported.
    package var term: Int64
    /// The tables whose rows were all exported, and what their records looked like then.
    package var shapes: [String: String]

    /// By table, the offsets after its rows, by partition. A topic that ends before them has lost records.
    package var ends: [String: [Int64]] = [:]

    /// Whether what was ingested is exported, too. Nil in positions of earlier versions.
    package var hasIngested: Bool?

    package init(term: Int64) {
        self.term = term
        shapes = [:]
    }

    /// Returns the name of the cursor of an export.
    package static func cursor(_ prefix: String) -> String { "martlet.export.\(prefix)" }

    private static let keys = "export/"
    private static func key(_ prefix: String) -> String { keys + prefix }

    /// Returns the prefixes of the exports that tell other systems what became of their changes.
    static func answering(_ db: Database) throws -> [String] {
        try Meta.entries(db, keys).compactMap { entry in
            let prefix = String(entry.key.dropFirst(keys.count))
            // A reader whose cursor was removed has ended.
            let position = try load(db, prefix)?.position
            return position?.hasIngested ?? false ? prefix : nil
        }
    }

    /// Returns the position, and the last transaction that was exported. Nil if this node has to begin anew: it never
    /// exported, or it lacks the history after that transaction.
    package static func load(_ db: Database, _ prefix: String) throws -> (position: ExportPosition, mark: Int64)? {
        guard let text = try Meta.text(db, key(prefix)), let mark = try Cursors.position(db, cursor(prefix)),
            try hasHistory(db, after: mark),
            mark <= (try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0)
        else { return nil }
        // What can't be read is exported again.
        return (try? JSONDecoder().decode(ExportPosition.self, from: Data(text.utf8))).map { ($0, mark) }
    }

    /// Returns true if the store has all history after a transaction.
    package static func hasHistory(_ db: Database, after mark: Int64) throws -> Bool {
        mark >= (try Meta.integer(db, MetaKey.prunedThrough) ?? 0)
    }

    /// - Parameter mark: the last transaction that was exported.
    package func save(_ db: Database, _ prefix: String, mark: Int64) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try Meta.set(db, Self.key(prefix), String(decoding: try encoder.encode(self), as: UTF8.self))
        try Self.advance(db, prefix, to: mark)
    }

    /// Moves the cursor only.
    package static func advance(_ db: Database, _ prefix: String, to mark: Int64) throws {
        try Cursors.set(db, cursor(prefix), mark)
    }

    /// Forgets the position, and lets history be deleted: another node exports.
    package static func forget(_ db: Database, _ prefix: String) throws {
        try Meta.set(db, key(prefix), nil)
        try OwedDelete.forgetAll(db, prefix)
        try Cursors.remove(db, cursor(prefix))
    }

    package static func exists(_ db: Database, _ prefix: String) throws -> Bool {
        try Meta.text(db, key(prefix)) != nil || Cursors.position(db, cursor(prefix)) != nil
    }
}
