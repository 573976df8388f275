import Foundation

/// A program that uses SQLite and knows nothing of Martlet.
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
    /// - Returns: the program's output.
    /// - Throws: ``Failure`` if the program reports a failure.
    @discardableResult
    public func run(_ sql: String, on path: String) throws -> String {
        switch self {
        case .shell: try Self.launch("sqlite3", ["-bail", path], input: ".timeout 20000\n" + sql + ";\n")
        case .python: try Self.python(Self.script, [path], input: sql)
        }
    }

    /// Runs SQL with the shell on a copy of the database file alone, without its write-ahead log.
    ///
    /// - Returns: the output, without the surrounding whitespace.
    public static func query(_ sql: String, onFileAlone path: String) throws -> String {
        let alone = path + "-\(UUID().uuidString)"
        // Another process makes the copy: if this process closed the file, it would release all of its locks on it.
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

    /// Starts a program, waits for its end, and returns its output.
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

    /// Interrupts the program, like Ctrl-C.
    public func interrupt() { process.interrupt() }

    /// Reads the whole output. Foundation's own function fails, and takes the process down, if a signal interrupts a
    /// read.
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

    /// Waits for the program's next line of output. What the program prints later is left for ``finish()``.
    public func line() throws -> String {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            let count = read(output.fileHandleForReading.fileDescriptor, &byte, 1)
            if count > 0 {
                if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
                line.append(byte)
            } else if count == 0 || errno != EINTR {
                throw ForeignProgram.Failure(
                    description: "\(name) ended: \(String(decoding: line, as: UTF8.self))")
            }
        }
    }

    /// Closes the program's input, and waits until the program ends by itself.
    ///
    /// - Returns: the program's output.
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
