import ArgumentParser
import Foundation

/// Runs the simulator, which is a program of its own: `martlet-simulate`.
struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Simulate nodes, files and a topic, with faults that a seed determines, and check every guarantee.",
        discussion: """
            Runs the program martlet-simulate from the folder of this program, or else from the PATH. \
            `martlet simulate --help` prints its options.
            """)

    private static let program = "martlet-simulate"

    @Argument(parsing: .captureForPassthrough, help: "The options of the simulator.")
    var arguments: [String] = []

    func run() throws {
        let beside = try? URL(
            fileURLWithPath: FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        ).deletingLastPathComponent().appendingPathComponent(Self.program).path
        // execvp looks on the PATH for a name without a slash.
        for path in [beside, Self.program].compactMap(\.self) { execute(path) }
        throw Failure(
            """
            The simulator can't be run: the program \(Self.program) is neither in the folder of this one nor on the \
            PATH. Build it from the sources: swift build -c release --product \(Self.program)
            """)
    }

    /// Replaces this process. Returns only if there is no such program.
    private func execute(_ path: String) {
        var words = ([Self.program] + arguments).map { strdup($0) } + [nil]
        execvp(path, &words)
        for word in words { free(word) }
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }
}
