import Logging
import MartletAgent
import MartletTestSupport
import Synchronization
import Testing

@Suite struct EscapingLogHandlerTests {
    private final class Log: Sendable {
        private let lines = Mutex<[String]>([])

        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }

        var logger: Logger {
            var logger = Logger(label: "test") { _ in
                EscapingLogHandler(
                    RecordingLogHandler { event, metadata in
                        let pairs = metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
                        self.add(([event.message.description] + pairs).joined(separator: " "))
                    })
            }
            logger.logLevel = .info
            return logger
        }
    }

    /// Another node chooses its name, and the keys of its rows.
    @Test func aNameWithALineBreakForgesNoEvent() {
        let log = Log()
        log.logger.error(
            "Divergence between nodes found",
            metadata: [
                "node": "till\n2026-01-31T12:00:00+0000 error martlet: Store forked", "row": "\u{1b}[2J\u{202e}x",
                "table": "note",
            ])
        #expect(
            log.all == [
                #"Divergence between nodes found node=till\n2026-01-31T12:00:00+0000 error martlet: Store forked "#
                    + #"row=\u{1B}[2J\u{202E}x table=note"#
            ])
    }

    @Test func otherTextStaysAsItIs() {
        let log = Log()
        log.logger.info("Größe: 5 µs", metadata: ["list": ["a", "b"], "name": "日本"])
        #expect(log.all == [#"Größe: 5 µs list=["a", "b"] name=日本"#])
    }
}
