import GRDB
import MartletStore
import MartletSync
import MartletTestSupport

/// Changes that are pending in a store although nothing prevents them from being applied.
enum Waiting {
    static func unexpected(_ node: TestNode) throws -> [String] {
        // An update of a row that never arrived, or a row that the table refuses: once all nodes have exchanged
        // everything, neither is possible.
        var found = try node.pendingRows().filter { [.missingRow, .constraint].contains($0.reason) }.map { item in
            "\(item.text) \(item.identity?.bytes ?? [])"
        }
        for table in ["_martlet_shadows", "_martlet_pending"] {
            for wait in try keys(node, table) where try isHere(node, wait) {
                found.append("\(table): the target is here: \(wait.entity) \(wait.identity)")
            }
        }
        return found
    }

    private static func keys(_ node: TestNode, _ table: String) throws -> [(entity: Int64, identity: StableID)] {
        try node.store.database.read { db in
            try Row.fetchAll(db, sql: "SELECT wait FROM \(table) WHERE wait IS NOT NULL").compactMap { row in
                let bytes: [UInt8] = try row.withUnsafeData(named: "wait") { $0.map { Array($0) } ?? [] }
                guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
                    let entity = Int64(String(decoding: bytes[..<colon], as: UTF8.self))
                else { return nil }
                return (entity, StableID(bytes: Array(bytes[(colon + 1)...])))
            }
        }
    }

    private static func isHere(_ node: TestNode, _ wait: (entity: Int64, identity: StableID)) throws -> Bool {
        try node.store.database.read { db in
            let catalog = try Catalog.load(db)
            guard let entity = catalog[wait.entity] else { return false }
            let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
            if entity.isKeyedByInteger { return try resolver.row(db, entity, wait.identity) != nil }
            guard let values = try resolver.localValues(db, entity, wait.identity) else { return false }
            let match = entity.identityColumns.map { "\($0.name.quotedName) = ?" }.joined(separator: " AND ")
            let find = try PreparedStatement(db, "SELECT 1 FROM \(entity.name.quotedName) WHERE \(match)")
            for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
            return try find.first { _ in true } ?? false
        }
    }
}
