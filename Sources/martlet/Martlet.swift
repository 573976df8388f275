import ArgumentParser
import MartletAgent

@main
struct Martlet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "martlet",
        abstract: "Sync SQLite databases between devices through a Kafka topic.",
        discussion: """
            Exit codes: 0 success, 1 the operation failed or found a problem, 2 `wait` timed out, 3 the history that \
            `history tail` was to print is incomplete, 64 incorrect usage.
            """,
        version: AgentVersion.current,
        subcommands: [
            DemoCommand.self, BrokerCommand.self, InitCommand.self, AttachCommand.self, AlterCommand.self,
            RunCommand.self, ExportCommand.self, IngestCommand.self, ForkCommand.self, RestampCommand.self,
            StatusCommand.self, WaitCommand.self, HistoryCommand.self, ParkedCommand.self, QuarantineCommand.self,
            ConflictsCommand.self,
            DigestCommand.self, VerifyCommand.self, SnapshotCommand.self, TopicCommand.self, DoctorCommand.self,
            KeyCommand.self,
            SimulateCommand.self,
        ])

    /// Errors quote names that other nodes chose, so their control characters are escaped here, where every command's
    /// error is printed.
    static func main() async {
        do {
            var command = try await asyncParseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            try LineOutput.flush()
        } catch {
            let code = exitCode(for: error)
            // Help, the version, and completion scripts.
            if code.isSuccess { exit(withError: error) }
            let text = EscapedText.escapedLines(fullMessage(for: error))
            if !text.isEmpty { ErrorOutput.write("\(text)\n") }
            exit(withError: code)
        }
    }
}
