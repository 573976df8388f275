import CBaseline
import Foundation
import GRDB
import MartletStore

/// Local writes to a tracked table, compared with the same writes by plain C to an untracked one.
struct LocalInsert {
    let run: Run

    private enum Variant: String, CaseIterable {
        case cUntracked = "C, untracked"
        case cTracked = "C, tracked (a foreign writer)"
        case swiftUntracked = "GRDB, untracked"
        case storeWriteC = "Store.write, bound in C"
        case storeWriteGRDB = "Store.write, GRDB statement"
        case storeWrite = "Store.write, PreparedStatement"
    }

    /// Rows per second for inserts, updates and deletes.
    private struct Rates {
        var insert: Double
        var update: Double?
        var delete: Double?
    }

    func measure() throws {
        for keying in run.keyings {
            for (perTransaction, count, goal) in [(1, 20_000, 0.72), (100, 200_000, 0.82), (10_000, 200_000, 0.72)] {
                try measure(keying, perTransaction, run.isQuick ? max(count / 5, 2 * perTransaction) : count, goal)
            }
        }
    }

    private func measure(_ keying: Keying, _ perTransaction: Int, _ count: Int, _ goal: Double) throws {
        let workload = Workload(rowCount: count)
        var rates: [Variant: [Rates]] = [:]
        _ = try interleaved(
            run.repetitions,
            Variant.allCases.map { variant in
                {
                    rates[variant, default: []].append(try measure(variant, keying, perTransaction, workload))
                    return 0
                }
            })
        func compare(_ variant: Variant, _ what: String, _ rate: (Rates) -> Double?, goal: Double? = nil) {
            let baseline = (rates[.cUntracked] ?? []).compactMap(rate)
            let values = (rates[variant] ?? []).compactMap(rate)
            guard !values.isEmpty else { return }
            run.report.compare(
                "\(keying.rawValue), tx \(perTransaction), \(what): \(variant.rawValue)", "rows/s", baseline: baseline,
                martlet: values, goal: goal)
        }
        compare(.storeWrite, "insert", \.insert, goal: goal)
        for variant in [Variant.storeWriteGRDB, .cTracked, .storeWriteC, .swiftUntracked] {
            compare(variant, "insert", \.insert)
        }
        compare(.storeWrite, "update", \.update)
        compare(.cTracked, "update", \.update)
        compare(.storeWrite, "delete", \.delete)
        compare(.cTracked, "delete", \.delete)
    }

    private func measure(_ variant: Variant, _ keying: Keying, _ perTransaction: Int, _ workload: Workload) throws
        -> Rates
    {
        let path = run.newFile()
        defer { run.remove(path) }
        switch variant {
        case .cUntracked, .cTracked:
            return try c(path, keying, perTransaction, workload, isTracked: variant == .cTracked)
        case .swiftUntracked: return try swift(path, keying, perTransaction, workload)
        case .storeWrite, .storeWriteGRDB, .storeWriteC:
            let store = try Store.makeBenchmark(path, keying, run.settings)
            defer { try? store.close() }
            if variant == .storeWriteC { return try boundInC(store, keying, perTransaction, workload) }
            if variant == .storeWrite { return try prepared(store, keying, perTransaction, workload) }
            return try swift(keying, perTransaction, workload) { body in try store.write(author: "app") { try body($0) }
            }
        }
    }

    private func c(_ path: String, _ keying: Keying, _ perTransaction: Int, _ workload: Workload, isTracked: Bool)
        throws -> Rates
    {
        if isTracked { try Store.makeBenchmark(path, keying, run.settings).close() }
        guard let database = baseline_open(path, run.settings.baseline) else { throw Failure("The baseline failed.") }
        defer { baseline_close(database) }
        if !isTracked { baseline_execute(database, keying.schema) }
        let count = Int32(workload.rows.count)
        func rate(_ seconds: Double) throws -> Double { Double(count) / (try checked(seconds)) }
        return Rates(
            insert: try rate(baseline_insert(database, keying.isUUID, workload.rows, count, Int32(perTransaction))),
            update: try rate(baseline_update(database, keying.isUUID, workload.rows, count, Int32(perTransaction))),
            delete: try rate(baseline_delete(database, keying.isUUID, workload.rows, count, Int32(perTransaction))))
    }

    private func swift(_ path: String, _ keying: Keying, _ perTransaction: Int, _ workload: Workload) throws -> Rates {
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
        try queue.write { try $0.execute(sql: keying.schema) }
        return try swift(keying, perTransaction, workload) { body in
            try queue.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    try body(db)
                    return .commit
                }
            }
        }
    }

    private func swift(
        _ keying: Keying, _ perTransaction: Int, _ workload: Workload,
        transaction: ((Database) throws -> Void) throws -> Void
    ) throws -> Rates {
        let writer = SwiftWriter(keying: keying)
        let rows = workload.swiftRows
        func rate(_ write: @escaping (Database, ArraySlice<SwiftRow>) throws -> Void) throws -> Double {
            let time = try seconds(run) {
                for start in stride(from: 0, to: rows.count, by: perTransaction) {
                    try transaction { try write($0, rows[start..<min(rows.count, start + perTransaction)]) }
                }
            }
            return Double(rows.count) / time
        }
        return Rates(
            insert: try rate(writer.insert), update: try rate { try writer.update($0, $1, step: $1.startIndex) },
            delete: try rate(writer.delete))
    }

    private func prepared(_ store: Store, _ keying: Keying, _ perTransaction: Int, _ workload: Workload) throws -> Rates
    {
        let rows = workload.swiftRows
        let statements = try store.write { db in
            try [SwiftWriter.insertSQL, SwiftWriter.updateSQL, SwiftWriter.deleteSQL].map {
                try PreparedStatement(db, $0)
            }
        }
        func rate(_ write: (PreparedStatement, SwiftRow) throws -> Void, _ statement: PreparedStatement) throws
            -> Double
        {
            let time = try seconds(run) {
                for start in stride(from: 0, to: rows.count, by: perTransaction) {
                    try store.write(author: "app") { _ in
                        for index in start..<min(rows.count, start + perTransaction) {
                            try write(statement, rows[index])
                        }
                    }
                }
            }
            return Double(rows.count) / time
        }
        func key(_ statement: PreparedStatement, _ parameter: Int32, _ row: SwiftRow) {
            if keying == .uuid {
                statement.bind(parameter, blob: row.uuidBytes)
            } else {
                statement.bind(parameter, row.number)
            }
        }
        return Rates(
            insert: try rate(
                { statement, row in
                    key(statement, 1, row)
                    statement.bind(2, text: row.title)
                    statement.bind(3, text: row.note)
                    statement.bind(4, real: row.weight)
                    statement.bind(5, row.done)
                    try statement.run()
                }, statements[0]),
            update: try rate(
                { statement, row in
                    statement.bind(1, 1 - row.done)
                    statement.bind(2, real: row.weight + 1)
                    key(statement, 3, row)
                    try statement.run()
                }, statements[1]),
            delete: try rate(
                { statement, row in
                    key(statement, 1, row)
                    try statement.run()
                }, statements[2]))
    }

    private func boundInC(_ store: Store, _ keying: Keying, _ perTransaction: Int, _ workload: Workload) throws -> Rates
    {
        let connection = try store.database.read { db in UnsafeMutableRawPointer(db.sqliteConnection) }
        let statement = baseline_prepare_insert(connection)
        defer { baseline_finalize(statement) }
        let time = try workload.rows.withUnsafeBufferPointer { rows in
            try seconds(run) {
                for start in stride(from: 0, to: rows.count, by: perTransaction) {
                    try store.write(author: "app") { _ in
                        let count = min(perTransaction, rows.count - start)
                        guard let base = rows.baseAddress,
                            baseline_run_insert(statement, keying.isUUID, base + start, Int32(count)) == 0
                        else { throw Failure("The baseline failed.") }
                    }
                }
            }
        }
        return Rates(insert: Double(workload.rows.count) / time)
    }
}
