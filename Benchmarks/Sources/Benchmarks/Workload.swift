import ArgumentParser
import CBaseline
import Foundation
import GRDB
import MartletStore

/// The kind of key of the benchmark's table.
enum Keying: String, CaseIterable, ExpressibleByArgument {
    /// A `BLOB` primary key that contains a UUID: the row identity on every node.
    case uuid
    /// `INTEGER PRIMARY KEY`: Martlet assigns a hidden ID.
    case integer

    var schema: String {
        let key = self == .uuid ? "id BLOB PRIMARY KEY NOT NULL" : "id INTEGER PRIMARY KEY"
        return "CREATE TABLE task(\(key), title TEXT NOT NULL, note TEXT, weight REAL, done INTEGER NOT NULL)"
    }

    var isUUID: Int32 { self == .uuid ? 1 : 0 }

    func key(_ row: SwiftRow) -> DatabaseValue { self == .uuid ? row.uuid : row.key }
}

/// A row in the form that a Swift program uses.
struct SwiftRow {
    let key: DatabaseValue
    let uuid: DatabaseValue
    let number: Int64
    let uuidBytes: [UInt8]
    let title: String
    let note: String
    let weight: Double
    let done: Int64

    init(_ row: baseline_row) {
        var row = row
        key = row.key.databaseValue
        number = row.key
        uuidBytes = withUnsafeBytes(of: &row.uuid) { Array($0) }
        uuid = withUnsafeBytes(of: &row.uuid) { Data($0) }.databaseValue
        title = withUnsafePointer(to: &row.title) {
            $0.withMemoryRebound(to: CChar.self, capacity: 32) { String(cString: $0) }
        }
        note = withUnsafePointer(to: &row.note) {
            $0.withMemoryRebound(to: CChar.self, capacity: 64) { String(cString: $0) }
        }
        weight = row.weight
        done = row.done
    }
}

/// The same rows and operations for C and for Swift.
struct Workload {
    let rows: [baseline_row]
    let swiftRows: [SwiftRow]
    let operations: [baseline_operation]

    init(rowCount: Int) {
        var rows = [baseline_row](repeating: baseline_row(), count: rowCount)
        baseline_make_rows(&rows, Int32(rowCount))
        self.rows = rows
        swiftRows = rows.map(SwiftRow.init)
        operations = []
    }

    init(operationCount: Int) {
        var operations = [baseline_operation](repeating: baseline_operation(), count: operationCount)
        let rowCount = baseline_make_operations(&operations, Int32(operationCount))
        var rows = [baseline_row](repeating: baseline_row(), count: Int(rowCount))
        baseline_make_rows(&rows, rowCount)
        self.rows = rows
        swiftRows = rows.map(SwiftRow.init)
        self.operations = operations
    }
}

/// The workload's statements as run by a Swift program with GRDB.
struct SwiftWriter {
    static let insertSQL = "INSERT INTO task(id, title, note, weight, done) VALUES (?, ?, ?, ?, ?)"
    static let updateSQL = "UPDATE task SET done = ?, weight = ? WHERE id = ?"
    static let deleteSQL = "DELETE FROM task WHERE id = ?"

    let keying: Keying

    func insert(_ db: Database, _ rows: ArraySlice<SwiftRow>) throws {
        let statement = try db.cachedStatement(sql: Self.insertSQL)
        for row in rows {
            statement.setUncheckedArguments([keying.key(row), row.title, row.note, row.weight, row.done])
            try statement.execute()
        }
    }

    /// - Parameter step: a counter for updates, so that each one changes something.
    func update(_ db: Database, _ rows: ArraySlice<SwiftRow>, step: Int) throws {
        let statement = try db.cachedStatement(sql: Self.updateSQL)
        for (index, row) in rows.enumerated() {
            statement.setUncheckedArguments([1 - row.done, row.weight + 1 + Double(step + index), keying.key(row)])
            try statement.execute()
        }
    }

    func delete(_ db: Database, _ rows: ArraySlice<SwiftRow>) throws {
        let statement = try db.cachedStatement(sql: Self.deleteSQL)
        for row in rows {
            statement.setUncheckedArguments([keying.key(row)])
            try statement.execute()
        }
    }
}

extension Store {
    /// Creates a store with the benchmark's table, tracked.
    static func makeBenchmark(_ path: String, _ keying: Keying, _ settings: Settings) throws -> Store {
        let store = try create(path: path, configuration: settings.store)
        try store.write { try $0.execute(sql: keying.schema) }
        let report = try store.attach()
        guard report.attached.count == 1 else { throw Failure("The table could not be attached: \(report)") }
        return store
    }
}
