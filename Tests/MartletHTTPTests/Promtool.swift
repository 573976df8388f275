import Foundation
import MartletTestSupport

/// Prometheus' own tool, from Debian's package `prometheus`.
enum Promtool {
    private static let path = ["/usr/bin", "/usr/local/bin"].map { $0 + "/promtool" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    static var isThere: Bool { path != nil }

    /// - Throws: ``TestFailure`` with the tool's complaints: invalid syntax, and names that violate the conventions.
    static func check(_ exposition: String) throws { try run(["check", "metrics"], input: exposition) }

    @discardableResult
    static func run(_ arguments: [String], input: String = "") throws -> String {
        guard let path else { throw TestFailure("There is no promtool") }
        let folder = try TemporaryFolder()
        try Data(input.utf8).write(to: folder.url.appendingPathComponent("input"))
        _ = FileManager.default.createFile(atPath: folder.path("output"), contents: nil)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardInput = try FileHandle(forReadingFrom: folder.url.appendingPathComponent("input"))
        let output = try FileHandle(forWritingTo: folder.url.appendingPathComponent("output"))
        process.standardOutput = output
        process.standardError = output
        try process.run()
        process.waitUntilExit()
        let text = try String(contentsOfFile: folder.path("output"), encoding: .utf8)
        guard process.terminationStatus == 0 else { throw TestFailure("promtool: \(text)\nof:\n\(input)") }
        return text
    }
}
