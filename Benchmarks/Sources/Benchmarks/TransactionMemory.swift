import ArgumentParser
import Dispatch
import Foundation
import GRDB
import MartletStore
import MartletSync

/// The most memory that each end needs for one large transaction. Each end runs in a process of its own, since the peak
/// of a whole process is measured, and the topic is a file.
struct TransactionMemory {
    enum End: String, CaseIterable, ExpressibleByArgument {
        /// The node that wrote the rows: it enqueues them, sends them, and reads its messages back.
        case author
        /// A node that gets them.
        case receiver
    }

    let run: Run
    let sizes: [Int]
    /// The goal for each end, in MB.
    private static let goal = 150.0

    func measure() throws {
        for keying in run.keyings {
            for size in sizes { try measure(keying, size) }
        }
    }

    private func measure(_ keying: Keying, _ size: Int) throws {
        let topic = run.newFile()
        defer { run.remove(topic) }
        for end in End.allCases {
            let path = run.newFile()
            defer { run.remove(path) }
            let store = try Store.makeBenchmark(path, keying, run.settings)
            if end == .author { try store.write(author: "app") { try $0.execute(sql: Self.insert(keying, size)) } }
            try store.close()
            let megabytes = try inProcess(end, path, topic)
            run.report.state(
                "\(keying.rawValue): most memory of the \(end.rawValue) of one transaction of \(size) rows", "MB",
                megabytes, below: Self.goal)
        }
        let messages = try FileTopic(topic).end()
        run.report.state("\(keying.rawValue): messages of that transaction", "", Double(messages))
    }

    private static func insert(_ keying: Keying, _ size: Int) -> String {
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(size))
        INSERT INTO task(id, title, note, weight, done)
        SELECT \(keying == .uuid ? "randomblob(16)" : "i"), 'The title of task ' || i,
          'Some words on what there is to do, and until when: ' || i, i / 7.0, i % 2
        FROM n
        """
    }

    private func inProcess(_ end: End, _ path: String, _ topic: String) throws -> Double {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [
            "--end", end.rawValue, "--end-store", path, "--end-topic", topic, "--settings", run.settings.rawValue,
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let text = String(decoding: output, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard process.terminationStatus == 0, let kilobytes = Double(text) else {
            throw Failure("The memory of the \(end.rawValue) could not be measured.")
        }
        return kilobytes / 1000
    }

    /// Runs one end until it is done, and prints the process's peak memory in kB.
    static func measure(_ end: End, _ run: Run, store: String, topic: String) throws {
        let engine = try SyncEngine(path: store, store: run.settings.store)
        let bus = FileBus(path: topic)
        switch end {
        case .author:
            let publisher = try Publisher(engine: engine, bus: bus)
            let consumer = Consumer(engine: engine, bus: bus, publisher: publisher)
            repeat { while publisher.step() {} } while publisher.currentProgress.acknowledged == 0
            while try engine.confirmed() == 0 { try step(consumer) }
        case .receiver:
            let consumer = Consumer(engine: engine, bus: bus)
            while try step(consumer) == 0 {}
        }
        try engine.close()
        let peak = Machine.lines("/proc/self/status").first { $0.hasPrefix("VmHWM:") }
        print(peak?.split(whereSeparator: \.isWhitespace).dropFirst().first ?? "?")
    }

    @discardableResult
    private static func step(_ consumer: Consumer) throws -> Int {
        guard let report = consumer.step(timeout: .zero) else { throw Failure("Reading is held up.") }
        guard report.quarantined == 0 else { throw Failure("A message was quarantined.") }
        return report.applied
    }
}

/// A topic of one partition in a file, so that its messages take no memory of the process that sends or reads them.
struct FileBus: Bus {
    let topic = "t"
    let path: String

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        FileProducer(try opened(), acknowledge)
    }

    func makeConsumer() throws(BusError) -> any BusConsumer { FileConsumer(try opened()) }

    private func opened() throws(BusError) -> FileTopic {
        try BusError.mapping { try FileTopic(path) }
    }
}

/// The file of a ``FileBus``.
final class FileTopic: Sendable {
    private let database: DatabaseQueue

    init(_ path: String) throws {
        database = try DatabaseQueue(path: path)
        try database.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    PRAGMA synchronous = OFF;
                    CREATE TABLE IF NOT EXISTS message(
                      offset INTEGER PRIMARY KEY, key BLOB NOT NULL, headers TEXT NOT NULL, payload BLOB NOT NULL);
                    """)
        }
    }

    func end() throws -> Int64 {
        try database.read { try Int64.fetchOne($0, sql: "SELECT ifnull(max(offset) + 1, 0) FROM message") ?? 0 }
    }

    func append(_ message: OutgoingMessage) throws -> Int64 {
        let headers = message.headers.map { "\($0.name)=\(String(decoding: $0.value, as: UTF8.self))" }
        return try database.write { db in
            let insert = try PreparedStatement(
                db,
                """
                INSERT INTO message(offset, key, headers, payload)
                VALUES ((SELECT ifnull(max(offset) + 1, 0) FROM message), ?1, ?2, ?3)
                """)
            insert.bind(1, blob: message.key)
            insert.bind(2, text: headers.joined(separator: "\n"))
            insert.bind(3, blob: message.payload)
            try insert.run()
            return db.lastInsertedRowID
        }
    }

    func messages(from offset: Int64, maxCount: Int, maxBytes: Int) throws -> [IncomingMessage] {
        try database.read { db in
            let read = try PreparedStatement(
                db, "SELECT offset, key, headers, payload FROM message WHERE offset >= ?1 ORDER BY offset")
            read.bind(1, offset)
            defer { read.reset() }
            var messages: [IncomingMessage] = []
            var bytes = 0
            while messages.count < maxCount, bytes < maxBytes, try read.step() {
                let headers = read.text(2).split(separator: "\n").compactMap { line -> MessageHeader? in
                    let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                    return parts.count == 2 ? MessageHeader(String(parts[0]), String(parts[1])) : nil
                }
                let message = IncomingMessage(
                    position: PartitionPosition(partition: 0, offset: read.integer(0)), key: read.blob(1),
                    headers: headers, payload: read.blob(3), timestamp: 0, isBrokerTimestamp: false)
                bytes += message.payload.count
                messages.append(message)
            }
            return messages
        }
    }
}

private final class FileProducer: BusProducer {
    private let topic: FileTopic
    private let acknowledge: @Sendable (Acknowledgement) -> Void
    private let queue = DispatchQueue(label: "file-producer")

    init(_ topic: FileTopic, _ acknowledge: @escaping @Sendable (Acknowledgement) -> Void) {
        self.topic = topic
        self.acknowledge = acknowledge
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        let offset = try BusError.mapping { try topic.append(message) }
        let answer = Acknowledgement(
            tag: message.tag, result: .success(PartitionPosition(partition: 0, offset: offset)))
        queue.async { [acknowledge] in acknowledge(answer) }
    }

    func flush(timeout: Duration) -> Bool {
        queue.sync {}
        return true
    }

    func close() { queue.sync {} }
}

/// Safe because one thread at a time uses a consumer.
private final class FileConsumer: BusConsumer, @unchecked Sendable {
    private let topic: FileTopic
    private var next: Int64 = 0
    private var reportedEnd: Int64?

    init(_ topic: FileTopic) { self.topic = topic }

    func partitionCount(timeout: Duration) throws(BusError) -> Int { 1 }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        next = positions.first?.offset ?? 0
        reportedEnd = nil
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try poll(maxCount: maxCount, maxBytes: .max, timeout: timeout)
    }

    func poll(maxCount: Int, maxBytes: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        var batch = ConsumerBatch()
        batch.messages = try BusError.mapping {
            try topic.messages(from: next, maxCount: maxCount, maxBytes: maxBytes)
        }
        if let last = batch.messages.last { next = last.position.offset + 1 }
        let end = try BusError.mapping { try topic.end() }
        if next == end, reportedEnd != end {
            reportedEnd = end
            batch.events.append(.endOfPartition(PartitionPosition(partition: 0, offset: end)))
        }
        return batch
    }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        Watermarks(low: 0, high: try BusError.mapping { try topic.end() })
    }

    func knownEnd(of partition: Int32) -> Int64? { nil }
    func publishProgress(_ positions: [PartitionPosition], of node: String) {}
    func close() {}
}

extension BusError {
    fileprivate static func mapping<T>(_ body: () throws -> T) throws(BusError) -> T {
        do {
            return try body()
        } catch {
            throw BusError(.other, "\(error)")
        }
    }
}
