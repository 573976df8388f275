import GRDB
import MartletStore
import SwiftData
import Testing

/// What `container.store` is in the closures of a custom stage.
struct MigrationStoreTests {
    enum Looks: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxAdded.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxAdded.self,
                    willMigrate: { context in
                        try context.delete(model: BoxV1.Box.self)
                        try context.save()
                        try look(context)
                    },
                    didMigrate: { context in
                        #expect(try context.fetchCount(FetchDescriptor<BoxAdded.Box>()) == 0)
                        try look(context)
                    })
            ]
        }

        private static func look(_ context: ModelContext) throws {
            let store = context.container.store
            #expect(try store.fetchHistory().count == 1)
            #expect(try store.lastToken() != nil)
            let count = try store.database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM Box") }
            #expect(count == 2)
            let error = #expect(throws: StoreError.self) {
                try store.write { try $0.execute(sql: "DELETE FROM Box") }
            }
            #expect(error?.code == .readOnly)
            #expect(throws: StoreError.self) { try store.setCursor("reader", to: nil) }
        }
    }

    @Test func theStoreInAStageReadsWhatWasThereBefore() throws {
        try MigratedStore.with(
            fill: { context in
                for name in ["a", "b"] { context.insert(BoxV1.Box(name)) }
            }
        ) { store in
            let container = try store.open(BoxAdded.self, Looks.self)
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<BoxAdded.Box>()) == 0)
            #expect(try container.store.fetchHistory().count == 2)
        }
    }
}
