import Foundation
import MartletStore
import SwiftData
import Synchronization
import Testing

/// A process that is killed in the middle of a migration.
struct MigrationCrashTests {
    /// Kills its process at one place; in another process it migrates.
    enum Deadly: SchemaMigrationPlan {
        static let place = Mutex("")

        static func die(_ here: String) {
            if place.withLock({ $0 }) == here { kill(getpid(), SIGKILL) }
        }

        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxRequired.self, BoxBack.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxRequired.self,
                    willMigrate: { context in
                        try context.delete(model: BoxV1.Box.self, where: #Predicate { $0.name == "b" })
                        try context.save()
                        die("after willMigrate's save")
                    },
                    didMigrate: { context in
                        context.insert(BoxRequired.Box())
                        try context.save()
                        die("after didMigrate's save")
                    }),
                .custom(
                    fromVersion: BoxRequired.self, toVersion: BoxBack.self, willMigrate: nil,
                    didMigrate: { _ in die("in the last stage") }),
            ]
        }

        static func migrationDidProgress(_ progress: MigrationProgress) {
            if progress.completedRowCount > 0 { die("while rows are copied") }
        }
    }

    /// All of the schema, and enough of the rows to tell that none is missing or changed.
    private func outline(_ store: MigratedStore) throws -> [String] {
        try store.lines("SELECT * FROM sqlite_schema ORDER BY rowid") + store.lines("SELECT * FROM _martlet_models")
            + store.lines(
                "SELECT count(*), sum(_id), sum(weight), sum(length(code)), group_concat(DISTINCT name) FROM Box")
            + store.lines("SELECT count(*), sum(id), sum(k) FROM _martlet_log")
    }

    @Test(arguments: [
        "after willMigrate's save", "while rows are copied", "after didMigrate's save", "in the last stage",
    ])
    func killedMigrationLeavesAStoreThatOpensAsItWas(place: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "models-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "a.store")
        let store = MigratedStore(configuration: ModelConfiguration(url: file))
        try store.use(BoxV1.self) { $0.insert(BoxV1.Box("a")) }
        // More than the page cache holds, so that some of the unfinished work is in the log.
        try store.run(
            """
            INSERT INTO Box(name, weight, code)
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 21000)
            SELECT CASE i % 1000 WHEN 0 THEN 'b' ELSE 'c' END, i, hex(zeroblob(300)) FROM n
            """)
        // Sealed, so that opening has nothing to add.
        try store.use(BoxV1.self) { _ in }
        let before = try outline(store)
        let path = file.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, place = place as String] in
            Deadly.place.withLock { $0 = place }
            let store = MigratedStore(configuration: ModelConfiguration(url: URL(fileURLWithPath: path)))
            _ = try store.open(BoxBack.self, Deadly.self)
        }
        #expect(try outline(store) == before)
        #expect(try store.lines("PRAGMA integrity_check") == ["ok"])
        try store.use(BoxV1.self) { context throws in
            #expect(try context.fetchCount(FetchDescriptor<BoxV1.Box>()) == 21_001)
        }
        try store.use(BoxBack.self, Deadly.self) { context throws in
            #expect(try context.fetchCount(FetchDescriptor<BoxBack.Box>()) == 20_981)
        }
        #expect(try store.lines("PRAGMA foreign_key_check").isEmpty)
    }
}
