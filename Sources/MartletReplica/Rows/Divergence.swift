public import Foundation
package import GRDB
package import MartletCore
public import MartletStore

/// A difference between two nodes that should not exist, because one of them had every transaction of the other.
public struct Divergence: Sendable, Equatable {
    public enum Kind: String, Sendable, Codable, CaseIterable {
        /// A row that this node did not have, or not since the same insert.
        case missingRow
        /// A delete that this node did not know of.
        case missingDelete
        /// A column that was older here.
        case olderValue
        /// A column that has one clock and two values.
        case otherValue
    }

    public enum Outcome: String, Sendable, Codable, CaseIterable {
        /// The other node's state was taken over.
        case repaired = "mended"
        /// This node's value wins: this node wrote it, or the rule for equal clocks decided so.
        case kept
        /// Not resolved yet: the node that wrote the value has to tell which one it was, or the table did not accept
        /// the other node's state.
        case open

        @available(*, deprecated, renamed: "repaired")
        public static var mended: Outcome { .repaired }
    }

    public var id: Int64
    public var kind: Kind
    public var outcome: Outcome
    public var entity: String
    public var identity: StableID
    public var column: String?
    /// The stamp of this node's state. Nil if it had none.
    public var here: Stamp?
    /// The stamp of the other node's state.
    public var there: Stamp
    /// The other node.
    public var node: NodeID
    public var nodeName: String?
    public var since: Date
}

extension Store {
    /// Returns the differences that checks have found, oldest first. The last thousand are kept.
    public func divergences() throws -> [Divergence] {
        try readSync { db in
            guard try db.hasTable(DivergenceLog.table) else { return [] }
            let catalog = try Catalog.load(db)
            let nodes = try NodeDirectory(db)
            let names = try Row.fetchAll(db, sql: "SELECT id, name FROM \(InternalName.nodes)")
            let nameOf = Dictionary(
                names.map { ($0["id"] as Int64, $0["name"] as String?) }, uniquingKeysWith: { a, _ in a })
            return try Row.fetchAll(db, sql: "SELECT * FROM \(DivergenceLog.table) ORDER BY id").compactMap { row in
                guard let kind = Divergence.Kind(rawValue: row["kind"]),
                    let outcome = Divergence.Outcome(rawValue: row["outcome"])
                else { return nil }
                let entity = catalog[row["entity"] as Int64]
                let slot: Int? = row["slot"]
                let here: Int64? = row["hlc"]
                return Divergence(
                    id: row["id"], kind: kind, outcome: outcome, entity: entity?.name ?? "?",
                    identity: StableID(bytes: row.bytes("ident")),
                    column: slot.flatMap { slot in entity?.columns.first { $0.slot == slot }?.name },
                    here: here.map {
                        Stamp(time: HybridTime(stored: $0), node: nodes.node(row["node"]))
                    },
                    there: Stamp(
                        time: HybridTime(stored: row["other_hlc"]),
                        node: nodes.node(row["other_node"])),
                    node: nodes.node(row["sender"]), nodeName: nameOf[row["sender"]] ?? nil,
                    since: Date(milliseconds: row["since"]))
            }
        } ?? []
    }

    /// Deletes the record of differences that checks have found.
    ///
    /// - Returns: how many there were.
    @discardableResult
    public func clearDivergences() throws -> Int {
        guard try readSync({ try $0.hasTable(DivergenceLog.table) }) ?? false else { return 0 }
        return try write { db in
            try db.execute(sql: "DELETE FROM \(DivergenceLog.table)")
            return db.changesCount
        }
    }
}

/// A difference in one register.
package struct FoundDivergence: Equatable {
    package var kind: Divergence.Kind
    package var outcome: Divergence.Outcome
    package var entity: Entity
    package var identity: StableID
    package var slot: Int?
    package var here: Stamp?
    package var there: Stamp

    package init(
        kind: Divergence.Kind, outcome: Divergence.Outcome, entity: Entity, identity: StableID, slot: Int? = nil,
        here: Stamp? = nil, there: Stamp
    ) {
        self.kind = kind
        self.outcome = outcome
        self.entity = entity
        self.identity = identity
        self.slot = slot
        self.here = here
        self.there = there
    }
}

/// Stores the differences that checks have found.
package struct DivergenceLog {
    package static let table = "_martlet_divergences"
    private static let limit = 1000

    package let db: Database
    package let context: ReplicaContext
    package let sender: NodeID

    package init(db: Database, context: ReplicaContext, sender: NodeID) {
        self.db = db
        self.context = context
        self.sender = sender
    }

    /// Returns how many are stored. None if the store has the format of an older version.
    package static func count(_ db: Database) throws -> Int {
        guard try db.hasTable(table) else { return 0 }
        return try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0
    }

    package func record(_ found: [FoundDivergence]) throws {
        guard !found.isEmpty else { return }
        let number = try context.nodes.number(db, sender)
        for one in found {
            let ident = Data(one.identity.bytes)
            // Each check finds again what can't be repaired.
            try db.execute(
                sql: """
                    DELETE FROM \(Self.table) WHERE entity = ? AND ident = ? AND slot IS ? AND kind = ? AND sender = ?
                    AND outcome <> 'mended'
                    """, arguments: [one.entity.id, ident, one.slot, one.kind.rawValue, number])
            try db.execute(
                sql: """
                    INSERT INTO \(Self.table)(entity, ident, slot, kind, outcome, hlc, node,
                    other_hlc, other_node, sender, since)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    one.entity.id, ident, one.slot, one.kind.rawValue, one.outcome.rawValue,
                    one.here.map { $0.time.stored },
                    try one.here.map { try context.nodes.number(db, $0.node) },
                    one.there.time.stored, try context.nodes.number(db, one.there.node), number,
                    context.now(),
                ])
        }
        try db.execute(
            sql: "DELETE FROM \(Self.table) WHERE id <= (SELECT max(id) FROM \(Self.table)) - ?",
            arguments: [Self.limit])
    }
}
