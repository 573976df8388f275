import Foundation
import Logging
import MartletAgent
import MartletSync
import ServiceLifecycle
import Synchronization

/// The last line of a terminal on standard error, which shows the present work. Log lines are written above it.
final class StatusLine: Sendable {
    /// The shown line. The lock is held during each write, so that nothing is written in between.
    private let text = Mutex("")

    /// Nil if nobody would see the line: it requires that both outputs are a terminal with a movable cursor, and that
    /// the log format is text.
    init?(_ format: AgentConfiguration.LogFormat) {
        guard Terminal.showsStatusLine, format == .text else { return nil }
    }

    /// Shows the line, or removes it if it is nil.
    func show(_ line: String?) {
        let line = line ?? ""
        text.withLock { text in
            guard line != text else { return }
            text = line
            write("\r\(line)\u{1b}[K")
        }
    }

    /// Runs a closure that writes whole lines to standard error.
    func above(_ body: () -> Void) {
        text.withLock { text in
            guard !text.isEmpty else { return body() }
            write("\r\u{1b}[K")
            body()
            write(text)
        }
    }

    private func write(_ text: String) { ErrorOutput.write(text) }
}

/// Logs above a status line.
struct StatusLineLogHandler: WrappingLogHandler {
    var handler: any LogHandler
    let line: StatusLine

    func log(event: LogEvent) {
        line.above { handler.log(event: event) }
    }
}

/// Shows the progress of an agent that has a lot to read, until the program stops.
struct CatchUpDisplay: Service {
    private static let interval = Duration.milliseconds(250)
    let line: StatusLine
    let agent: ReloadableAgent

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                var catchUp = CatchUp()
                defer { line.show(nil) }
                while true {
                    let progress = agent.current.consumer.currentProgress
                    line.show(catchUp.line(progress, at: .now, columns: Terminal.errorColumns))
                    try await Task.sleep(for: Self.interval)
                }
            }
        } catch is CancellationError {}
    }
}
