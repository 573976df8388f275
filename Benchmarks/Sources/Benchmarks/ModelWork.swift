import CBaseline
import Foundation
import GRDB
import MartletData
import MartletStore

/// Saving and fetching models, compared with GRDB's records and plain C on the same tables.
struct ModelWork {
    let run: Run
    private let count: Int
    private let folderCount = 1_000
    private let labelCount: Int
    private let findCount = 2_000
    private let workload: Workload

    init(run: Run) {
        self.run = run
        count = run.isQuick ? 20_000 : 100_000
        // Ten entries share a label.
        labelCount = count / 10
        workload = Workload(rowCount: count)
    }

    private enum Variant: String, CaseIterable {
        case c = "C"
        case records = "GRDB"
        case trackedRecords = "GRDB, tracked"
        case models = "models"
    }

    private struct Step: CaseIterable {
        let name: String
        let goal: Double
        static let allCases = [
            Step(name: "insert and save", goal: 0.5), Step(name: "fetch all", goal: 0.5),
            Step(name: "fetch by an indexed predicate", goal: 1 / 1.5),
            Step(name: "update one attribute of each", goal: 0.5),
            Step(name: "traverse a prefetched relationship", goal: 0.5),
        ]
    }

    func measure() throws {
        var seconds: [Variant: [[Double]]] = [:]
        let schema = try schema()
        _ = try interleaved(
            run.repetitions,
            Variant.allCases.map { variant in
                {
                    seconds[variant, default: []].append(try measure(variant, schema))
                    return 0
                }
            })
        let work = [count, count, findCount * 10, count, count].map(Double.init)
        for (index, step) in Step.allCases.enumerated() {
            func rates(_ variant: Variant) -> [Double] { (seconds[variant] ?? []).map { work[index] / $0[index] } }
            run.report.compare(
                "\(step.name), by GRDB's records", "rows/s", baseline: rates(.records), martlet: rates(.models),
                goal: step.goal)
            if index == 0 || index == 3 {
                run.report.compare(
                    "\(step.name), by records in a tracked table", "rows/s", baseline: rates(.trackedRecords),
                    martlet: rates(.models))
            }
            run.report.compare("\(step.name), by C", "rows/s", baseline: rates(.c), martlet: rates(.models))
        }
    }

    private func measure(_ variant: Variant, _ schema: String) throws -> [Double] {
        let path = run.newFile()
        defer { run.remove(path) }
        switch variant {
        case .c: return try c(path, schema)
        case .records:
            let store = run.settings.store
            var options = Configuration()
            options.prepareDatabase { db in
                try db.execute(
                    sql: """
                        PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -\(store.cacheKiB);
                        PRAGMA secure_delete = \(store.secureDelete ? 1 : 0);
                        PRAGMA wal_autocheckpoint = \(store.walAutocheckpointPages)
                        """)
            }
            let queue = try DatabaseQueue(path: path, configuration: options)
            defer { try? queue.close() }
            try queue.write { try $0.execute(sql: schema) }
            return try records(read: { try queue.read($0) }, write: { body in try queue.write { try body($0) } })
        case .trackedRecords:
            let store = try container(path).store
            return try records(
                read: { try store.database.read($0) },
                write: { body in try store.write(author: "app") { try body($0) } })
        case .models: return try models(path)
        }
    }

    // MARK: Each side

    private func container(_ path: String) throws -> ModelContainer {
        try ModelContainer(
            for: Folder.self, Entry.self, configurations: ModelConfiguration(url: URL(fileURLWithPath: path)))
    }

    /// The tables and indexes of the models, without the triggers.
    private func schema() throws -> String {
        let path = run.newFile()
        defer { run.remove(path) }
        return try container(path).store.database.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT sql || ';' FROM sqlite_master WHERE tbl_name IN ('Entry', 'Folder')
                    AND type IN ('table', 'index') AND sql IS NOT NULL ORDER BY type DESC, name DESC
                    """
            ).joined(separator: "\n")
        }
    }

    private func c(_ path: String, _ schema: String) throws -> [Double] {
        guard let database = baseline_open(path, run.settings.baseline) else { throw Failure("The baseline failed.") }
        defer { baseline_close(database) }
        baseline_execute(database, schema)
        let (count, folders, labels, times) = (Int32(count), Int32(folderCount), Int32(labelCount), Int32(findCount))
        return try [
            baseline_models_insert(database, workload.rows, count, folders, labels),
            baseline_models_fetch(database, count),
            baseline_models_find(database, times, labels, times * 10), baseline_models_update(database, count),
            baseline_models_traverse(database, count, folders),
        ].map(checked)
    }

    private func records(
        read: ((Database) throws -> Int) throws -> Int, write: ((Database) throws -> Void) throws -> Void
    ) throws -> [Double] {
        let rows = workload.swiftRows
        let insert = try seconds(run) {
            try write { db in
                var folders: [Int64] = []
                for index in 0..<folderCount {
                    var folder = FolderRecord(name: rows[index].title)
                    try folder.insert(db)
                    folders.append(folder.id ?? 0)
                }
                for (index, row) in rows.enumerated() {
                    var entry = EntryRecord(
                        row, label: index % labelCount, when: Double(index), folder: folders[index % folderCount])
                    try entry.insert(db)
                }
            }
        }
        var entries: [EntryRecord] = []
        let fetch = try seconds(run) {
            try expect(
                count,
                try read { db in
                    entries = try EntryRecord.order(Column("_id")).fetchAll(db)
                    return entries.count
                })
        }
        let find = try seconds(run) {
            for time in 0..<findCount {
                try expect(
                    10,
                    try read {
                        try EntryRecord.filter(Column("label") == time % labelCount).order(Column("_id")).fetchAll($0)
                            .count
                    })
            }
        }
        let update = try seconds(run) {
            try write { db in
                for index in entries.indices {
                    try entries[index].updateChanges(db) { $0.weight = Double(index) + 0.5 }
                }
            }
        }
        var length = 0
        let traverse = try seconds(run) {
            try expect(
                count,
                try read { db in
                    let filed = try EntryRecord.including(optional: EntryRecord.folder.forKey(FiledEntry.scope)).order(
                        Column("_id")
                    )
                    .asRequest(of: FiledEntry.self).fetchAll(db)
                    for entry in filed { length += entry.folder?.name.utf8.count ?? 0 }
                    return filed.count
                })
        }
        guard length > 0 else { throw Failure("No entry has a folder.") }
        return [insert, fetch, find, update, traverse]
    }

    private func models(_ path: String) throws -> [Double] {
        let rows = workload.swiftRows
        let container = try container(path)
        let insert = try seconds(run) {
            let context = ModelContext(container)
            context.author = "app"
            let folders = (0..<folderCount).map { Folder(name: rows[$0].title) }
            for (index, row) in rows.enumerated() {
                context.insert(
                    Entry(
                        title: row.title, note: row.note, weight: row.weight, label: index % labelCount,
                        when: Date(timeIntervalSince1970: Double(index)), folder: folders[index % folderCount]))
            }
            try context.save()
        }
        let context = ModelContext(container)
        context.author = "app"
        var entries: [Entry] = []
        let fetch = try seconds(run) {
            entries = try context.fetch(FetchDescriptor<Entry>())
            try expect(count, entries.count)
        }
        let finder = ModelContext(container)
        let find = try seconds(run) {
            for time in 0..<findCount {
                let label = time % labelCount
                try expect(
                    10, try finder.fetch(FetchDescriptor<Entry>(predicate: #Predicate { $0.label == label })).count)
            }
        }
        let update = try seconds(run) {
            for (index, entry) in entries.enumerated() { entry.weight = Double(index) + 0.5 }
            try context.save()
        }
        entries = []
        let reader = ModelContext(container)
        var length = 0
        let traverse = try seconds(run) {
            var descriptor = FetchDescriptor<Entry>()
            descriptor.relationshipKeyPathsForPrefetching = [\.folder]
            for entry in try reader.fetch(descriptor) { length += entry.folder?.name.utf8.count ?? 0 }
        }
        guard length > 0 else { throw Failure("No entry has a folder.") }
        return [insert, fetch, find, update, traverse]
    }

    private func expect(_ wanted: Int, _ found: Int) throws {
        guard wanted == found else { throw Failure("\(found) entries instead of \(wanted).") }
    }
}
