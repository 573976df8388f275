import Foundation
import SwiftData
import Synchronization
import Testing

/// The progress that is reported while a large table is rebuilt, and what that costs.
///
/// For a million rows, in a release build: `MARTLET_MIGRATION_ROWS=1000000 swift test -c release --filter
/// MigrationProgressTests`.
struct MigrationProgressTests {
    enum Told: SchemaMigrationPlan {
        static let progress = Mutex<[MigrationProgress]>([])
        static var schemas: [any VersionedSchema.Type] { [BoxV1.self, BoxRenamedAndChanged.self] }
        static var stages: [MigrationStage] {
            [
                .custom(
                    fromVersion: BoxV1.self, toVersion: BoxRenamedAndChanged.self, willMigrate: { _ in },
                    didMigrate: { _ in })
            ]
        }
        static func migrationDidProgress(_ progress: MigrationProgress) {
            Self.progress.withLock { $0.append(progress) }
        }
    }

    private var rows: Int {
        ProcessInfo.processInfo.environment["MARTLET_MIGRATION_ROWS"].flatMap { Int($0) } ?? 50_000
    }

    /// The most memory that the process has had, in MiB.
    private var peak: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
        return (line?.split(separator: " ").compactMap { Int($0) }.first ?? 0) / 1024
    }

    @Test func progressIsToldForEveryBatchOfRows() throws {
        let rows = rows
        try MigratedStore.with(fill: { _ in }) { store in
            try store.run(
                """
                INSERT INTO Box(name, weight, code)
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
                SELECT 'name ' || i, i, 'c' FROM n
                """)
            try store.use(BoxV1.self) { _ in }
            let before = peak
            let start = ContinuousClock.now
            let container = try store.open(BoxRenamedAndChanged.self, Told.self)
            let took = ContinuousClock.now - start
            let told = Told.progress.withLock { $0 }
            #expect(told.map(\.step).first == .willMigrate)
            #expect(told.map(\.step).last == .didMigrate)
            let copied = told.filter { $0.entityName == "Box" }
            #expect(copied.map(\.totalRowCount) == Array(repeating: rows, count: copied.count))
            #expect(copied.map(\.completedRowCount) == Array(stride(from: 0, to: rows, by: 20_000)) + [rows])
            #expect(told.allSatisfy { $0.toVersion == Schema.Version(2, 0, 0) })
            let count = try ModelContext(container).fetchCount(
                FetchDescriptor<BoxRenamedAndChanged.Box>(
                    predicate: #Predicate { $0.remark == "none" && $0.mass > 0.5 }))
            #expect(count == rows)
            if rows > 100_000 { print("\(rows) rows: \(took), peak \(before) MiB before, \(peak) MiB after") }
        }
    }
}
