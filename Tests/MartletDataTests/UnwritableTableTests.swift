import Foundation
import GRDB
import MartletStore
import SwiftData
import Testing

/// A model's table that got an index with a collation that only another program has.
@Suite struct UnwritableTableTests {
    @Test func itsContainerStillOpens() throws {
        try MigratedStore.with(fill: { $0.insert(BoxV1.Box("a")) }) { store in
            let program = try DatabaseQueue(path: store.configuration.url.path)
            try program.writeWithoutTransaction { db in
                db.add(collation: DatabaseCollation("own") { $0.compare($1) })
                try db.execute(sql: "CREATE INDEX own_name ON Box(name COLLATE own)")
            }
            try store.use(BoxV1.self) { context throws in
                #expect(try context.container.store.lostEntities().map(\.name) == ["Box"])
                #expect(try context.all(BoxV1.Box.self).map(\.name) == ["a"])
                context.insert(BoxV1.Label("x"))
            }
            try program.writeWithoutTransaction { try $0.execute(sql: "DROP INDEX own_name") }
            try program.close()
            try store.use(BoxV1.self) { context throws in
                #expect(try context.container.store.lostEntities().isEmpty)
                context.insert(BoxV1.Box("b"))
            }
            #expect(try store.lines("SELECT name FROM Box ORDER BY name") == ["a", "b"])
            #expect(try store.lines("SELECT text FROM Label") == ["x"])
        }
    }
}
