import Foundation
import MartletAgent
import MartletExport
import MartletIngest
import MartletKafka
import MartletStore
import MartletSync
import Testing

@Suite struct AgentConfigurationTests {
    private func parse(_ yaml: String) throws -> AgentConfiguration {
        try AgentConfiguration(yaml: yaml, readFile: { _ in "from the file\n" })
    }

    private func problems(_ yaml: String) -> [String] {
        MartletAgentTests.problems { _ = try parse(yaml) }
    }

    @Test func theExampleFileContainsTheDefaults() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("config/martlet.yaml")
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(try parse(text) == AgentConfiguration())
        // A missing key has its default, so that the comparison can't notice it; at least every group must be there.
        for group in [
            "store", "node", "kafka", "sync", "snapshot", "check", "export", "ingest", "security", "history", "http",
            "telemetry", "log",
        ] {
            #expect(text.contains("\n\(group):\n") || text.hasPrefix("\(group):\n"))
        }
    }

    @Test(arguments: ["?\n-", "store:\n  {a: 1}: b", "kafka: [{[a]: b}]"])
    func parsingRefusesKeysThatAreNoText(yaml: String) {
        let found = problems(yaml)
        #expect(found.count == 1 && found[0].hasPrefix("Line ") && found[0].contains("must be a name"), "\(found)")
    }

    @Test func parsingReadsValues() throws {
        let configuration = try parse(
            """
            store: {path: a.sqlite, synchronous: full, busyTimeout: 250ms, cacheKiB: 100}
            node: {name: box}
            kafka:
              bootstrapServers: [a:1, b:2]
              topic: t
              securityProtocol: sasl_ssl
              sasl: {mechanism: PLAIN, username: me, passwordFile: /secret}
              properties: {socket.keepalive.enable: true}
            sync: {format: json, maxClockSkew: 1h, foreignAuthor: legacy, traceHeaders: given}
            snapshot: {interval: 12h, minTransactions: 5, partRows: 100}
            check: {interval: 10m}
            export: {prefix: shop, tables: [a, b], schemas: true, ingested: true, partitions: 3, leaseTimeout: 1m}
            history: {retention: {age: 30d, sizeBytes: 1000}}
            log: {level: debug, format: json}
            """)
        #expect(configuration.storePath == "a.sqlite")
        #expect(configuration.snapshot.interval == .seconds(43_200))
        #expect(configuration.snapshot.minTransactions == 5 && configuration.snapshot.partRows == 100)
        #expect(configuration.check.interval == .seconds(600))
        #expect(configuration.export.prefix == "shop" && configuration.export.tables == ["a", "b"])
        #expect(configuration.export.schemas && !configuration.export.cloudEvents && configuration.export.ingested)
        #expect(configuration.export.partitions == 3 && configuration.export.batchChanges == 1000)
        #expect(configuration.export.leaseTimeout == .seconds(60) && configuration.export.replicationFactor == nil)
        #expect(configuration.store.synchronous == .full)
        #expect(configuration.store.busyTimeout == .milliseconds(250))
        #expect(configuration.store.foreignAuthor == "legacy")
        #expect(configuration.sync.name == "box")
        #expect(configuration.sync.encoding == .json)
        #expect(configuration.sync.maxClockSkew == .seconds(3600))
        #expect(configuration.sync.traceHeaders == .given)
        #expect(configuration.kafka.bootstrapServers == ["a:1", "b:2"])
        #expect(configuration.kafka.credentials?.username == "me")
        #expect(configuration.kafka.credentials?.password == Secret("from the file"))
        #expect(configuration.kafka.properties == ["socket.keepalive.enable": "true"])
        #expect(configuration.historyAge == .seconds(30 * 86_400))
        #expect(configuration.historySizeBytes == 1000)
        #expect(configuration.logFormat == .json)
    }

    @Test func topicsToIngestAreAListOfGroups() throws {
        let configuration = try parse(
            """
            ingest:
              topics:
                - topic: pg.public.product
                  table: product
                - {topic: pg.public.country, table: 0123, columns: {code: code, title: 1.10}}
            """)
        #expect(
            configuration.ingest.topics == [
                TableMapping(topic: "pg.public.product", table: "product"),
                TableMapping(
                    topic: "pg.public.country", table: "0123", columns: ["code": "code", "title": "1.10"]),
            ])
        #expect(try parse("ingest: {topics: []}") == AgentConfiguration())
        #expect(try parse("ingest:\n  topics:") == AgentConfiguration())
    }

    @Test func problemsOfTopicsToIngestNameTheirPlace() throws {
        #expect(problems("ingest: {topics: a}") == ["ingest.topics: must be a list of groups of keys"])
        #expect(
            problems("ingest: {topics: [{topic: a, table: b}, {topik: a, table: [b]}]}") == [
                "ingest.topics[1].table: must be text", "ingest.topics[1].topik: unknown key; did you mean topic?",
            ])
        var configuration = try parse("ingest: {topics: [{topic: a}, {topic: a, table: b}]}")
        #expect(
            configuration.validate().filter { $0.hasPrefix("ingest.") } == [
                "ingest.topics[0].table: is empty", "ingest.topics: a is there more than once",
            ])
        configuration = try parse(
            """
            kafka: {topic: own}
            export: {prefix: shop}
            ingest: {topics: [{topic: own.check, table: a}, {topic: shop.a, table: b}, {topic: shops.a, table: c}]}
            """)
        let found = configuration.validate().filter { $0.hasPrefix("ingest.") }
        #expect(found.count == 2 && found[0].contains("own.check is a topic of the nodes"))
        #expect(found.last?.contains("shop.a begins with export.prefix") ?? false)
    }

    @Test func theSizeOfABatchHasBounds() throws {
        #expect(try parse("sync: {applyBatchBytes: 1000}").sync.applyBatchBytes == 1000)
        for value in ["999", "-1", "1073741825"] {
            let found = try parse("sync: {applyBatchBytes: \(value)}").validate().filter { $0.hasPrefix("sync.") }
            #expect(found == ["sync.applyBatchBytes: \(value) must be between 1000 and 1073741824"])
        }
    }

    @Test(arguments: ["{}", "history:", "history:\n  retention:", "history: {retention: {}}", "log: {level: debug}"])
    func historyHasBoundsByDefault(yaml: String) throws {
        let configuration = try parse(yaml)
        #expect(configuration.historyAge == .seconds(30 * 86_400))
        #expect(configuration.historySizeBytes == 256 << 20)
    }

    /// Files from before there were defaults say null.
    @Test(arguments: ["null", "~", "", "never"])
    func anExplicitNullOrNeverKeepsTheHistory(value: String) throws {
        let both = try parse("history:\n  retention:\n    age: \(value)\n    sizeBytes: \(value)")
        #expect(both.historyAge == nil && both.historySizeBytes == nil)
        let one = try parse("history:\n  retention:\n    age: \(value)")
        #expect(one.historyAge == nil && one.historySizeBytes == AgentConfiguration().historySizeBytes)
    }

    @Test(arguments: ["age: 0s", "age: ever", "age: 30", "sizeBytes: 0", "sizeBytes: 1GB"])
    func aBoundOfTheHistoryThatIsNoneIsRefused(text: String) throws {
        let key = "history.retention." + text.prefix { $0 != ":" }
        let yaml = "store: {path: x}\nkafka: {bootstrapServers: [a:1]}\nhistory: {retention: {\(text)}}"
        let found = (try? parse(yaml))?.validate() ?? problems(yaml)
        #expect(found.count == 1 && found[0].hasPrefix(key), "\(found)")
    }

    @Test func anUnknownKeyIsReportedWithTheNearestKnownKey() {
        #expect(problems("store: {pth: x}") == ["store.pth: unknown key; did you mean store.path?"])
        #expect(problems("kafak: {topic: x}").first?.contains("did you mean kafka") == true)
    }

    @Test func parsingReportsEveryProblemAtOnce() {
        let found = problems(
            """
            store: {cacheKiB: much, synchronous: maybe, busyTimeout: 5}
            log: loud
            """)
        #expect(found.count == 4)
        #expect(found.contains { $0.hasPrefix("store.cacheKiB: much") })
        #expect(found.contains { $0.hasPrefix("store.synchronous: maybe must be one of normal, full") })
        #expect(found.contains { $0.hasPrefix("store.busyTimeout: 5 is not a duration") })
        #expect(found.contains { $0.hasPrefix("log: must have keys") })
    }

    @Test func parsingRefusesInvalidYAML() {
        #expect(problems("store: [").first?.contains("not valid YAML") == true)
        #expect(problems("just text").first?.contains("keys and values") == true)
    }

    /// To YAML they are numbers, truth values and a date.
    @Test(arguments: [
        "0123456", "0899", "1.10", "1e10", "0x1F", "1_000", "12:34:56", "yes", "off", "True", "2026-01-31",
        "12345678901234567890",
    ])
    func textIsReadAsTheFileHasIt(_ text: String) throws {
        let configuration = try parse(
            """
            node:
              name: \(text)
            kafka:
              topic: \(text)
              sasl:
                mechanism: PLAIN
                username: \(text)
                password: \(text)
            sync:
              foreignAuthor: \(text)
            """)
        #expect(configuration.sync.name == text)
        #expect(configuration.kafka.topic == text)
        #expect(configuration.kafka.credentials?.username == text)
        #expect(configuration.kafka.credentials?.password.value == text)
        #expect(configuration.store.foreignAuthor == text)
    }

    @Test func anAuthorOfOtherProgramsThatMartletItselfUsesIsAProblem() throws {
        let found = try parse("sync: {foreignAuthor: martlet.sync}").validate().filter { $0.contains("foreignAuthor") }
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("sync.foreignAuthor: martlet.sync is the author") == true)
    }

    @Test func librdkafkasPropertiesAreReadAsTheFileHasThem() throws {
        let configuration = try parse(
            """
            kafka:
              properties:
                ssl.key.password: 0123
                client.rack: 1.10
                socket.keepalive.enable: yes
                fetch.min.bytes: 10
                debug: null
            """)
        #expect(
            configuration.kafka.properties == [
                "ssl.key.password": "0123", "client.rack": "1.10", "socket.keepalive.enable": "true",
                "fetch.min.bytes": "10",
            ])
    }

    @Test func aPropertyThatIsAListOrAMappingIsRefusedWithoutItsValue() {
        let found = problems("kafka: {properties: {ssl: {key: {password: hunter2}}, debug: [hunter2]}}")
        #expect(
            found == [
                "kafka.properties.debug: must be text or a number", "kafka.properties.ssl: must be text or a number",
            ])
    }

    @Test func aPrintedConfigurationHidesThePassword() throws {
        let configuration = try parse("kafka: {sasl: {mechanism: PLAIN, username: me, password: hunter2}}")
        #expect(!"\(configuration)".contains("hunter2"))
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("hunter2"))
    }

    @Test(arguments: [
        ("500ms", 500), ("5s", 5000), ("1.5s", 1500), ("2m", 120_000), ("1h", 3_600_000), ("1d", 86_400_000),
    ])
    func durationsAreReadWithTheirUnits(_ text: String, _ milliseconds: Int) {
        #expect(Duration(text: text) == .milliseconds(milliseconds))
    }

    @Test(arguments: ["", "5", "s", "-5s", "5 weeks", "1e5s"]) func invalidTextIsNoDuration(_ text: String) {
        #expect(Duration(text: text) == nil)
    }
}
