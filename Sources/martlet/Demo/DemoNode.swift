import Foundation
import GRDB
import MartletAgent
import MartletStore
import MartletSync
import Synchronization

/// A `martlet` process of the demonstration.
final class DemoProcess {
    private let process = Process()
    private let output = Pipe()

    /// Starts this program with other arguments. Its log goes to the file.
    init(_ arguments: [String], log: URL) throws {
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        process.standardError = try FileHandle(forWritingTo: log)
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        Self.running.withLock { _ = $0.insert(process.processIdentifier) }
    }

    /// Each process has a group of its own, which Ctrl-C in the terminal does not reach.
    private static let running = Mutex(Set<pid_t>())

    /// At SIGINT and SIGTERM, ends all processes that run, calls `cleanUp`, and ends this process. In effect until the
    /// sources are cancelled.
    static func endAtSignals(_ cleanUp: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
        [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                // Keeps the lock to the end, so that nothing is started meanwhile.
                running.withLock { processes in
                    for process in processes { kill(process, SIGKILL) }
                    cleanUp()
                    exit(128 + number)
                }
            }
            source.resume()
            return source
        }
    }

    /// Waits for the first line that the process prints.
    func firstLine() throws -> String {
        var line = Data()
        while let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty, byte != Data("\n".utf8) {
            line += byte
        }
        return String(decoding: line, as: UTF8.self)
    }

    var isRunning: Bool { process.isRunning }

    /// Asks the process to stop, and waits until it has.
    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        process.waitUntilExit()
        Self.running.withLock { _ = $0.remove(process.processIdentifier) }
    }
}

/// One device of the demonstration: a store, and the agent's process beside it.
final class DemoNode {
    let name: String
    let path: String
    private let directory: URL
    private var agent: DemoProcess?
    let store: Store

    static let schema = """
        CREATE TABLE trip(
          id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, start_date TEXT NOT NULL, end_date TEXT NOT NULL,
          destination TEXT, rating INTEGER, UNIQUE(name, start_date, end_date));
        CREATE TABLE accommodation(
          id INTEGER PRIMARY KEY AUTOINCREMENT, trip INTEGER NOT NULL REFERENCES trip(id) ON DELETE CASCADE,
          name TEXT NOT NULL, is_confirmed INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX accommodation_trip ON accommodation(trip);
        """

    init(_ name: String, in directory: URL) throws {
        self.name = name
        self.directory = directory
        path = directory.appendingPathComponent("\(name).sqlite").path
        store = try Store.create(path: path)
        try store.write { try $0.execute(sql: Self.schema) }
        var request = AttachRequest()
        request.identities = ["trip": ["name", "start_date", "end_date"]]
        _ = try store.attach(request)
    }

    /// Starts the agent.
    func connect(to broker: String) throws {
        agent = try DemoProcess(
            [
                "run", "--store", path, "--bootstrap-servers", broker, "--topic", "trips", "--name", name,
                "--kafka", "fetch.wait.max.ms=10",
            ], log: directory.appendingPathComponent("\(name).log"))
    }

    func disconnect() {
        agent?.stop()
        agent = nil
    }

    var isConnected: Bool { agent?.isRunning ?? false }

    /// Commits a transaction, as an app on the device would.
    @discardableResult
    func app(_ sql: String) throws -> ContinuousClock.Instant {
        try store.write(author: "app") { try $0.execute(sql: sql) }
        return .now
    }

    /// Returns the rows of a query, as text with bars between the values.
    func rows(_ sql: String) throws -> [String] {
        try store.read { db in
            try Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map {
                    String.fromDatabaseValue($0) ?? Int64.fromDatabaseValue($0).map(String.init) ?? "-"
                }
                .joined(separator: " | ")
            }
        }
    }

    /// Waits until the query returns these rows. Polls.
    ///
    /// - Throws: ``DemoFailure`` after ten seconds, or when the agent has ended.
    func wait(for expected: [String], from sql: String) throws -> ContinuousClock.Instant {
        let deadline = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < deadline {
            if try rows(sql) == expected { return .now }
            if !isConnected { throw DemoFailure("The agent of \(name) has ended; see \(directory.path)/\(name).log.") }
            usleep(200)
        }
        throw DemoFailure("\(name) should have \(expected), but has \(try rows(sql)).")
    }
}

struct DemoFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
