import CBaseline
import Foundation
import GRDB
import MartletStore
import MartletSync

/// A store with many small transactions that were never published.
struct Backlog {
    let path: String
    let keying: Keying
    let workload: Workload

    let changesPerTransaction: Int

    /// Creates the store.
    init(_ run: Run, _ keying: Keying, transactionCount: Int, changesPerTransaction: Int = 1) throws {
        self.keying = keying
        self.changesPerTransaction = changesPerTransaction
        workload = Workload(operationCount: transactionCount * changesPerTransaction)
        path = run.newFile()
        let store = try Store.makeBenchmark(path, keying, run.settings)
        let writer = SwiftWriter(keying: keying)
        for start in stride(from: 0, to: workload.operations.count, by: changesPerTransaction) {
            try store.write(author: "app") { db in
                for step in start..<start + changesPerTransaction {
                    let operation = workload.operations[step]
                    let index = Int(operation.row)
                    let row = workload.swiftRows[index...index]
                    switch Int(operation.kind) {
                    case BASELINE_INSERT: try writer.insert(db, row)
                    case BASELINE_UPDATE: try writer.update(db, row, step: step)
                    default: try writer.delete(db, row)
                    }
                }
            }
        }
        try store.close()
    }

    /// Stamps and enqueues every transaction, and returns how long that took.
    func register(_ run: Run) throws -> Double {
        let engine = try SyncEngine(path: path, store: run.settings.store)
        defer { try? engine.close() }
        return try seconds(run) { _ = try engine.apply([], topic: "none") }
    }

    /// Copies the file, so that the copy can be written to.
    func copy(_ run: Run) throws -> String {
        let copy = run.newFile()
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        return copy
    }
}

/// Reads enqueued transactions as the messages that would be sent.
struct MessageSource {
    private let database: DatabaseQueue
    private let origin: [UInt8]

    init(path: String) throws {
        var options = Configuration()
        options.readonly = true
        database = try DatabaseQueue(path: path, configuration: options)
        origin = try database.read { db in
            Array((try String.fetchOne(db, sql: "SELECT value FROM _martlet_meta WHERE key = 'node'") ?? "").utf8)
        }
    }

    /// The message of a transaction that took several commits to enqueue. On a busy machine, small ones do, too: a
    /// commit ends after 25 ms, in the middle of a transaction if need be.
    private func parts(_ db: Database, _ sequence: Int64) throws -> [UInt8] {
        let parts = try Data.fetchAll(
            db, sql: "SELECT bytes FROM _martlet_outbox_parts WHERE sequence = ? ORDER BY part", arguments: [sequence])
        guard !parts.isEmpty else { throw Failure("The outbox has no message \(sequence).") }
        return parts.flatMap { Array($0) }
    }

    /// The next messages after a sequence.
    func messages(after sequence: Int64, limit: Int) throws -> [IncomingMessage] {
        try database.read { db in
            var messages: [IncomingMessage] = []
            messages.reserveCapacity(limit)
            let rows = try Row.fetchCursor(
                db, sql: "SELECT sequence, payload FROM _martlet_outbox WHERE sequence > ? ORDER BY sequence LIMIT ?",
                arguments: [sequence, limit])
            while let row = try rows.next() {
                let sequence: Int64 = row[0]
                var payload = try row.withUnsafeData(atIndex: 1) { $0.map { Array($0) } ?? [] }
                if payload.isEmpty { payload = try parts(db, sequence) }
                messages.append(
                    IncomingMessage(
                        position: PartitionPosition(partition: 0, offset: sequence - 1), key: origin,
                        headers: [
                            MessageHeader("martlet-format", "protobuf"), MessageHeader("martlet-origin", origin),
                            MessageHeader("martlet-sequence", String(sequence)),
                        ], payload: payload, timestamp: 0, isBrokerTimestamp: false))
            }
            return messages
        }
    }
}
