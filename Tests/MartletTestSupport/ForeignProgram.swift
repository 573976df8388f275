import Foundation

/// A program that knows SQLite and nothing of Martlet.
public enum ForeignProgram: Sendable, CaseIterable {
    /// The sqlite3 shell. Each statement is a transaction unless the SQL says otherwise.
    case shell
    /// Python's sqlite3 module, with `executescript`.
    case python

    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    /// Runs SQL on the file, with the program's own settings.
    ///
    /// - Returns: what it printed.
    /// - Throws: ``Failure`` when the program says that it failed.
    @discardableResult
    public func run(_ sql: String, on path: String) throws -> String {
        switch self {
        case .shell: try Self.launch("sqlite3", ["-bail", path], input: ".timeout 20000\n" + sql + ";\n")
        case .python: try Self.python(Self.script, [path], input: sql)
        }
    }

    /// Runs SQL with the shell on a copy of the file that lacks what is in its write-ahead log only.
    ///
    /// - Returns: what it printed, without the end of the line.
    public static func query(_ sql: String, onFileAlone path: String) throws -> String {
        let alone = path + "-\(UUID().uuidString)"
        // In another process: this one would let go of all locks on the file when it closes it.
        _ = try launch("cp", [path, alone], input: "")
        defer { try? FileManager.default.removeItem(atPath: alone) }
        return try shell.run(sql, on: alone).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static let script = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], timeout=20)
        connection.executescript(sys.stdin.read())
        connection.commit()
        connection.close()
        """

    /// Runs a Python program.
    @discardableResult
    public static func python(_ program: String, _ arguments: [String], input: String = "") throws -> String {
        try launch("python3", ["-c", program] + arguments, input: input)
    }

    /// Starts a program, and waits for its end.
    public static func launch(_ name: String, _ arguments: [String], input: String) throws -> String {
        let running = try RunningProgram(name, arguments)
        running.write(input)
        return try running.finish()
    }
}

/// A program that runs beside the test.
public final class RunningProgram {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private let name: String

    public init(_ name: String, _ arguments: [String]) throws {
        self.name = name
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
    }

    public func write(_ text: String) {
        try? input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
    }

    /// As Ctrl-C.
    public func interrupt() { process.interrupt() }

    /// Foundation's own way gives up, the process with it, when a signal interrupts a read.
    private func readAll() throws -> [UInt8] {
        var all: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(output.fileHandleForReading.fileDescriptor, &part, part.count)
            if count > 0 {
                all += part[..<count]
            } else if count == 0 {
                return all
            } else if errno != EINTR {
                throw ForeignProgram.Failure(description: "\(name): \(String(cString: strerror(errno)))")
            }
        }
    }

    /// Ends its input, and waits for it to end by itself.
    ///
    /// - Returns: what it printed.
    public func finish() throws -> String {
        try input.fileHandleForWriting.close()
        let text = String(decoding: try readAll(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw ForeignProgram.Failure(description: "\(name) ended with \(process.terminationStatus): \(text)")
        }
        return text
    }
}
