import Foundation
package import GRDB
package import MartletCore
import MartletStore

/// The nodes that this store has heard of, each with the small number that stands for it in clocks.
///
/// Confined to its connection. Discard it after a rollback: it may hold nodes that were not stored.
package final class NodeDirectory {
    private var ids: [Int64: NodeID] = [0: .none]
    private var numbers: [NodeID: Int64] = [.none: 0]
    /// The node that was last asked for: a message asks for its origin several times.
    private var latest: (node: NodeID, number: Int64) = (.none, 0)

    package init(_ db: Database) throws {
        for row in try Row.fetchAll(db, sql: "SELECT id, uuid FROM \(InternalName.nodes)") {
            let bytes = try row.withUnsafeData(named: "uuid") { $0.map { Array($0) } ?? [] }
            if let node = NodeID(bytes: bytes) { add(row["id"], node) }
        }
    }

    private func add(_ number: Int64, _ node: NodeID) {
        ids[number] = node
        numbers[node] = number
    }

    private var named: [NodeID: String] = [:]

    /// Stores the name that the node gives itself.
    package func note(_ db: Database, _ node: NodeID, name: String) throws {
        guard !name.isEmpty, named[node] != name else { return }
        named[node] = name
        try db.execute(
            sql: "UPDATE \(InternalName.nodes) SET name = ?1 WHERE id = ?2 AND name IS NOT ?1",
            arguments: [name, try number(db, node)])
    }

    /// Returns the number that a node has in the file. Nil if it has none.
    package static func number(_ db: Database, of node: NodeID) throws -> Int64? {
        try Int64.fetchOne(
            db, sql: "SELECT id FROM \(InternalName.nodes) WHERE uuid = ?", arguments: [Data(node.bytes)])
    }

    /// Returns true if this node has ever had a stamp of another system; see ``/MartletCore/NodeID/isSource``. Then its
    /// own transactions may have stamps that do not ascend.
    package static func hasSource(_ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM \(InternalName.nodes) WHERE substr(hex(uuid), 13, 1) = '8')"))
            ?? false
    }

    package func node(_ number: Int64) -> NodeID { number == latest.number ? latest.node : ids[number] ?? .none }

    /// Returns the number of the node, and assigns one if it has none.
    package func number(_ db: Database, _ node: NodeID, name: String? = nil) throws -> Int64 {
        if latest.node == node { return latest.number }
        if let number = numbers[node] {
            latest = (node, number)
            return number
        }
        let insert = try PreparedStatement(db, "INSERT INTO \(InternalName.nodes)(uuid, name) VALUES (?1, ?2)")
        insert.bind(1, blob: node.bytes)
        insert.bind(2, optional: name)
        try insert.run()
        add(db.lastInsertedRowID, node)
        return db.lastInsertedRowID
    }
}
