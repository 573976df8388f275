import Foundation
import GRDB
import MartletStore
import MartletSync

/// A store with the tables with which every node starts. Created once, and copied.
struct StoreTemplate: Sendable {
    let path: String

    /// - Throws: ``/MartletCore/StoreError`` if the schema can't be created or tracked.
    init(_ schema: SimulatedSchema, path: String) throws {
        self.path = path
        let store = try Store.create(path: path)
        try store.database.writeWithoutTransaction { try $0.execute(sql: schema.sql + ";\n" + SimulatedSchema.own) }
        try Self.set(store, MetaKey.hiddenNamespace, UUIDs.make(0, 1))
        let report = try store.attach(schema.request)
        // No node sends a virtual table, such as a full-text index: its contents are derived from other tables.
        let virtual = try store.database.writeWithoutTransaction { db in
            try Set(String.fetchAll(db, sql: "SELECT name FROM pragma_table_list WHERE type IN ('virtual', 'shadow')"))
        }
        let isWanted = { (name: String) in !virtual.contains(name) && !name.hasPrefix(SimulatedSchema.keptPrefix) }
        if let refusal = report.refused.first(where: { isWanted($0.table) }) { throw refusal.error }
        try SyncEngine(path: path).close()
        try store.database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        try store.close()
    }

    /// Creates the store of one node, with an identity of its own.
    ///
    /// - Returns: the connection that was used. Reuse it, since reading the schema is a large part of the work.
    func copy(to path: String, node: [UInt8], seed: UInt64) throws -> DatabaseQueue {
        try FileManager.default.copyItem(atPath: self.path, toPath: path)
        let queue = try SimulatedNode.connect(path)
        try queue.write { db in
            let number = UInt64(node[0]) << 8 | UInt64(node[1])
            try Meta.set(db, MetaKey.storeID, UUIDs.make(seed, number).uuidString)
            try Meta.set(db, MetaKey.hiddenNamespace, UUIDs.make(seed, number &+ 1).uuidString)
            try Meta.set(db, "node", UUIDs.make(node).uuidString)
        }
        return queue
    }

    private static func set(_ store: Store, _ key: String, _ uuid: UUID) throws {
        try store.database.writeWithoutTransaction { try Meta.set($0, key, uuid.uuidString) }
    }
}

/// A directory, in memory if possible, that is deleted with the last reference to it.
package final class SimulationFolder: Sendable {
    package let path: String

    package init() throws {
        let memory = "/dev/shm"
        let isThere = FileManager.default.isWritableFile(atPath: memory)
        path =
            (isThere ? memory : FileManager.default.temporaryDirectory.path) + "/martlet-simulator-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
