package import Logging

/// Keeps each event of a text log on its line, and free of control characters.
///
/// Names of nodes and tables, and values of rows, come from other nodes: a line break in one of them could look like
/// an event of its own, and an escape sequence changes the terminal of whoever reads the log.
package struct EscapingLogHandler: WrappingLogHandler {
    package var handler: any LogHandler

    package init(_ handler: any LogHandler) { self.handler = handler }

    package func log(event: LogEvent) {
        var event = event
        event.message = "\(EscapedText.escaped("\(event.message)"))"
        event.metadata = event.metadata?.mapValues { "\(EscapedText.escaped("\($0)"))" }
        handler.log(event: event)
    }
}
