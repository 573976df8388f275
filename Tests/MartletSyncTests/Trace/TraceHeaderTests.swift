import GRDB
import Logging
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

private let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/// Changes that are traced from the node that saves them to the node that applies them.
@Suite struct TraceHeaderTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    private func node(_ name: String, _ headers: TraceHeaders) throws -> TestNode {
        try lab.node(name) {
            $0.traceHeaders = headers
            $0.maxMessageBytes = 1000
        }
    }

    private func write(_ node: TestNode, _ key: String, context: String? = nil, bytes: Int = 1) throws {
        try node.store.write(context: context) { db in
            try db.execute(sql: "INSERT INTO setting VALUES ('\(key)', hex(zeroblob(\(bytes))))")
        }
    }

    private func parents() throws -> [String?] { try messages(lab.bus).map { $0.text("traceparent") } }

    /// The traces of remote transactions, according to the history.
    private func applied(_ node: TestNode) throws -> [String?] {
        try node.store.fetchHistory(HistoryQuery()).filter { $0.origin != nil }.map { $0.trace?.traceparent }
    }

    private func derived(_ node: TestNode, _ sequence: Int64) -> String {
        TraceContext(origin: node.engine.node, sequence: sequence).traceparent
    }

    // MARK: Sending

    @Test func eachChunkHasTheTraceDerivedFromOriginAndSequence() throws {
        let a = try node("a", .always)
        try write(a, "small")
        try write(a, "large", bytes: 2500)
        try a.publish()
        let found = try parents()
        #expect(found.count > 4 && found[0] == derived(a, 1))
        #expect(found.dropFirst().allSatisfy { $0 == derived(a, 2) })
        let b = try node("b", .always)
        try b.consume()
        #expect(try b.keys() == ["large", "small"])
        #expect(try applied(b) == [derived(a, 1), derived(a, 2)])
        // The trace is derived from what the history has, and is not stored again.
        #expect(try b.store.fetchHistory(HistoryQuery()).allSatisfy { $0.context == nil })
    }

    @Test func aRepublishedTransactionHasTheSameTraceAlsoAfterARestart() throws {
        let a = try node("a", .always)
        try write(a, "given", context: "traceparent=\(given)")
        try write(a, "derived")
        try a.publish()
        a.publisher.rewind(to: 0)
        try a.publish()
        try a.restart()
        a.publisher.rewind(to: 0)
        try a.publish()
        let expected: [String?] = [given, derived(a, 2)]
        #expect(try parents() == expected + expected + expected)
    }

    @Test func aTraceGivenByAnApplicationIsPassedOn() throws {
        let a = try node("a", .given)
        try write(a, "plain", context: "import")
        try write(a, "traced", context: "checkout traceparent=\(given) tracestate=rojo=1", bytes: 2500)
        try write(a, "broken", context: "traceparent=\(given)0")
        try a.publish()
        let all = try messages(lab.bus)
        #expect(all.first?.text("traceparent") == nil && all.last?.text("traceparent") == nil)
        let traced = all.dropFirst().dropLast()
        #expect(traced.count > 2)
        #expect(traced.allSatisfy { $0.text("traceparent") == given && $0.text("tracestate") == "rojo=1" })
        let b = try node("b", .given)
        try b.consume()
        #expect(try applied(b) == [derived(a, 1), given, derived(a, 3)])
        #expect(try b.store.fetchHistory().compactMap(\.context) == ["traceparent=\(given)"])
    }

    @Test func noTraceIsSentOrReadByDefault() throws {
        let a = try lab.node("a")
        try write(a, "one", context: "traceparent=\(given)")
        try a.publish()
        #expect(try parents() == [nil])
        let b = try node("b", .given)
        try write(b, "two", context: "traceparent=\(given)")
        try exchange([a, b])
        #expect(try a.keys() == ["one", "two"] && b.keys() == ["one", "two"])
        #expect(try applied(a) == [derived(b, 1)])
        #expect(try applied(b) == [derived(a, 1)])
    }

    @Test func rowsThatAFilterReleasesAreNotPartOfTheEarlierTrace() throws {
        let a = try node("a", .given)
        var filters = SyncFilters()
        filters.publish = ["trip": "budget > 10"]
        try a.restart { $0.filters = filters }
        try a.write("INSERT INTO trip(name, budget) VALUES ('kept back', 5)")
        try write(a, "traced", context: "traceparent=\(given)")
        try a.publish()
        try a.restart { $0.filters = SyncFilters() }
        try a.publish()
        #expect(try parents() == [given, nil])
    }

    // MARK: Receiving

    /// Headers that other programs may send, or an attacker.
    @Test(arguments: [
        ["of somebody else"], [""], [given.uppercased()], [String(repeating: "0", count: 1000)], [given, given],
        ["00-00000000000000000000000000000000-0000000000000000-00"],
    ])
    func malformedHeadersAreIgnored(_ values: [String]) throws {
        let a = try node("a", .never)
        try write(a, "one")
        try a.publish()
        var message = try #require(try lab.messages().first)
        message.headers += values.map { MessageHeader("traceparent", $0) }
        let b = try node("b", .always)
        let report = try b.receive([message])
        #expect(report.applied == 1 && report.quarantined == 0)
        #expect(try b.keys() == ["one"])
        #expect(try applied(b) == [derived(a, 1)])
    }

    @Test(arguments: [TraceHeaders.never, .given, .always]) func sealedAndSignedMessagesWithTraceHeadersAreAccepted(
        _ reader: TraceHeaders
    ) throws {
        let keys = try TestKeys("k1")
        let key = NodeSigningKey()
        let a = try lab.node("a", MessageSecurity(keys: keys, signingKey: key)) {
            $0.traceHeaders = .always
            $0.maxMessageBytes = 1000
        }
        try write(a, "small", context: "traceparent=\(given)")
        try write(a, "large", bytes: 2500)
        try a.publish()
        let found = try parents()
        #expect(found.count > 2 && found.allSatisfy { $0 != nil })
        let rules = MessageSecurity(keys: keys) { $0.origins = [a.engine.node.uuid: [key.publicKey]] }
        let b = try lab.node("b", rules) { $0.traceHeaders = reader }
        #expect(try b.consume().quarantined == 0)
        #expect(try b.keys() == ["large", "small"])
        #expect(try applied(b) == [reader == .never ? derived(a, 1) : given, derived(a, 2)])
        // Anyone with access to the topic may change the headers: the only effect is another trace.
        let c = try lab.node("c", rules) { $0.traceHeaders = reader }
        var changed = try messages(lab.bus)
        for index in changed.indices { changed[index].set("traceparent", "nothing") }
        #expect(try c.deliver(changed).quarantined == 0)
        #expect(try applied(c) == [derived(a, 1), derived(a, 2)])
    }

    // MARK: Logs

    @Test(arguments: [TraceHeaders.never, .given, .always])
    func bothNodesLogTheSameTrace(_ headers: TraceHeaders) throws {
        let a = try node("a", headers)
        let b = try node("b", headers)
        try write(a, "given", context: "traceparent=\(given)")
        try write(a, "large", bytes: 2500)
        let log = RecordedLog()
        let publisher = try Publisher(
            engine: a.engine, bus: lab.bus, progressInterval: .zero, log: log.logger("publisher", .debug))
        let consumer = Consumer(engine: b.engine, bus: lab.bus, log: log.logger("consumer", .debug))
        for _ in 0..<10 { publisher.step() }
        for _ in 0..<10 { consumer.step(timeout: .milliseconds(1)) }
        #expect(try b.keys() == ["given", "large"])
        var expected: [[String: String]] = []
        for text in [headers == .never ? derived(a, 1) : given, derived(a, 2)] {
            let trace = try #require(TraceContext(traceparent: text))
            expected.append([
                "origin": "\(a.engine.node)", "sequence": "\(expected.count + 1)", "trace_id": trace.traceID,
                "span_id": trace.spanID,
            ])
        }
        #expect(log.fields("Transaction sent") == expected)
        #expect(log.fields("Transaction applied") == expected)
    }

    @Test func singleTransactionsAreNotLoggedAboveDebug() throws {
        let a = try node("a", .always)
        let b = try node("b", .always)
        try write(a, "one")
        let log = RecordedLog()
        let publisher = try Publisher(
            engine: a.engine, bus: lab.bus, progressInterval: .zero, log: log.logger("publisher", .info))
        let consumer = Consumer(engine: b.engine, bus: lab.bus, log: log.logger("consumer", .info))
        for _ in 0..<10 { publisher.step() }
        for _ in 0..<10 { consumer.step(timeout: .milliseconds(1)) }
        #expect(try b.keys() == ["one"])
        #expect(log.fields("Transaction sent") == [] && log.fields("Transaction applied") == [])
    }
}

/// The logged fields, by message.
private final class RecordedLog: Sendable {
    private let events = Mutex<[(message: String, fields: [String: String])]>([])

    func logger(_ label: String, _ level: Logger.Level) -> Logger {
        var logger = Logger(label: label) { _ in
            RecordingLogHandler { [self] event, _ in
                let fields = (event.metadata ?? [:]).mapValues { "\($0)" }
                events.withLock { $0.append(("\(event.message)", fields)) }
            }
        }
        logger.logLevel = level
        return logger
    }

    func fields(_ message: String) -> [[String: String]] {
        events.withLock { events in events.filter { $0.message == message }.map { $0.fields } }
    }
}
