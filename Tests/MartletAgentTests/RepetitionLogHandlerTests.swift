import Logging
import MartletAgent
import MartletTestSupport
import Synchronization
import Testing

@Suite struct RepetitionLogHandlerTests {
    /// The logged lines, and a clock that stands still until a test advances it.
    private final class Log: Sendable {
        private let lines = Mutex<[String]>([])
        private let time = Mutex(ContinuousClock.now)

        func pass(_ duration: Duration) { time.withLock { $0 += duration } }

        func take() -> [String] {
            lines.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }

        func logger(_ level: Logger.Level = .info) -> Logger {
            var logger = Logger(label: "test") { _ in
                RepetitionLogHandler(
                    RecordingLogHandler { event, _ in
                        let repeated = event.metadata?["repeated"].map { " (\($0))" } ?? ""
                        self.lines.withLock { $0.append("\(event.message)\(repeated)") }
                    }, now: { self.time.withLock { $0 } })
            }
            logger.logLevel = level
            return logger
        }
    }

    @Test func anOutageIsLoggedEveryTenMinutes() {
        let log = Log()
        let logger = log.logger()
        for _ in 0..<120 {
            logger.warning("Held up", metadata: ["error": "refused"])
            log.pass(.seconds(10))
        }
        #expect(log.take() == ["Held up", "Held up (59)"])
    }

    @Test func aFailureOfEachMinuteIsLoggedEveryTenMinutes() {
        let log = Log()
        let logger = log.logger()
        for _ in 0..<20 {
            logger.warning("Held up", metadata: ["error": "refused"])
            log.pass(.seconds(75))
        }
        #expect(log.take() == ["Held up", "Held up (7)", "Held up (7)"])
    }

    /// Each attempt uses a new producer, and librdkafka's error text contains its number.
    @Test func p168TheSameErrorOfANewProducerCountsAsARepetition() {
        let log = Log()
        let logger = log.logger()
        func text(_ number: Int) -> String {
            "ProduceRequest for t [0] with \(number) message(s) failed "
                + "(broker 1 PID{Id:\(1000 + number),Epoch:0}, base seq 0, \(number - 2)ms ago)"
        }
        for number in 1...3 {
            logger.error("Producer error", metadata: ["error": "\(text(number))"])
            logger.critical("\(text(number))", metadata: ["facility": "FATAL"])
        }
        #expect(log.take() == ["Producer error", text(1)])
    }

    @Test func aNoticeRestartsTheSuppression() {
        let log = Log()
        let logger = log.logger()
        for _ in 0..<3 {
            logger.notice("Read again")
            for _ in 0..<2 { logger.warning("Held up", metadata: ["error": "refused"]) }
        }
        #expect(log.take() == ["Read again", "Held up", "Read again", "Held up", "Read again", "Held up"])
    }

    @Test func aReturningErrorIsLoggedAgain() {
        let log = Log()
        let logger = log.logger()
        logger.warning("Held up", metadata: ["error": "refused"])
        logger.warning("Held up", metadata: ["error": "refused"])
        log.pass(.seconds(181))
        logger.warning("Held up", metadata: ["error": "refused"])
        #expect(log.take() == ["Held up", "Held up (1)"])
    }

    @Test func otherErrorsAndMessagesBelowWarningAreLogged() {
        let log = Log()
        var other = log.logger()
        let logger = other
        other[metadataKey: "client"] = "producer"
        for _ in 0..<2 {
            logger.warning("Held up", metadata: ["error": "refused"])
            logger.warning("Held up", metadata: ["error": "timed out"])
            logger.error("Held up", metadata: ["error": "refused"])
            other.warning("Held up", metadata: ["error": "refused"])
            logger.info("Read again", metadata: ["count": "1"])
        }
        #expect(log.take() == ["Held up", "Held up", "Held up", "Held up", "Read again", "Read again"])
    }

    @Test func theDurationOfAnAttemptMakesNoNewError() {
        let log = Log()
        let logger = log.logger()
        logger.error("refused (after 0ms in state CONNECT)", metadata: ["facility": "FAIL"])
        logger.error(
            "refused (after 3ms in state CONNECT, 1 identical error(s) suppressed)", metadata: ["facility": "FAIL"])
        logger.error("refused (after 3ms in state UP)", metadata: ["facility": "FAIL"])
        #expect(log.take().count == 2)
    }

    @Test func theDebugLevelLogsEveryRepetition() {
        let log = Log()
        let logger = log.logger(.debug)
        for _ in 0..<3 { logger.warning("Held up", metadata: ["error": "refused"]) }
        #expect(log.take().count == 3)
    }

    @Test func manyDifferentErrorsAreAllLogged() {
        let log = Log()
        let logger = log.logger()
        for number in 0..<2000 { logger.error("Held up", metadata: ["error": "\(number)"]) }
        #expect(log.take().count == 2000)
    }
}
