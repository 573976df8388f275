import Foundation
import GRDB
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Each test injects one fault, and the doctor reports exactly that one.
@Suite(.timeLimit(.minutes(5))) struct DoctorTests {
    private static let schema = """
        CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT, tag TEXT, owner INTEGER REFERENCES owner(id));
        CREATE INDEX note_text ON note(text);
        """
    private let directory: TemporaryDirectory
    private let bus = InMemoryBus(topic: "t", partitionCount: 1)

    init() throws { directory = try TemporaryDirectory() }

    private func node(_ name: String, schema: String = DoctorTests.schema) throws -> TestNode {
        try TestNode(name, bus: bus, directory: directory, schema: schema)
    }

    /// A node that has published and consumed.
    private func healthy() throws -> TestNode {
        let (a, b) = (try node("a"), try node("b"))
        try a.write("INSERT INTO owner VALUES (1, 'ann'); INSERT INTO note VALUES (1, 'one', 'x', 1)")
        try exchange([a, b])
        return a
    }

    /// Runs SQL on the file after closing Martlet's store and engine.
    private func tamper(_ node: TestNode, _ sql: String) throws {
        try node.store.close()
        try node.engine.close()
        let queue = try DatabaseQueue(path: node.path)
        try queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA writable_schema = ON")
            try db.execute(sql: sql)
        }
        try queue.close()
    }

    /// The findings other than `ok`, without the one on this machine's SQLite.
    private func findings(_ path: String) throws -> [Finding] {
        try StoreDoctor.examine(path: path).filter { $0.level != .ok && $0.check != "sqlite" }
    }

    private func expectOnly(
        _ check: String, _ level: Finding.Level, _ text: String, _ remedy: String, at path: String
    ) throws {
        let found = try findings(path)
        #expect(found.map(\.check) == [check])
        #expect(found.first?.level == level)
        #expect(found.first?.message.contains(text) == true, "\(found)")
        #expect(found.first?.remedy?.contains(remedy) == true, "\(found)")
    }

    @Test func aHealthyStoreHasNoFindings() throws {
        #expect(try findings(healthy().path).isEmpty)
    }

    @Test func anOldSQLiteCausesAWarning() throws {
        let finding = try #require(try StoreDoctor.examine(path: healthy().path).first { $0.check == "sqlite" })
        let version = try DatabaseQueue().read { try String.fetchOne($0, sql: "SELECT sqlite_version()") ?? "" }
        #expect(finding.message.contains(version))
        let isOld = version.compare("3.51.3", options: .numeric) == .orderedAscending
        #expect(finding.level == (isOld ? .warning : .ok))
    }

    @Test func p62DoctorWarnsOfColumnsThatSwappedTheirNames() throws {
        let node = try healthy()
        try node.foreignWrite(
            """
            ALTER TABLE note RENAME COLUMN text TO other; ALTER TABLE note RENAME COLUMN tag TO text;
            ALTER TABLE note RENAME COLUMN other TO tag
            """)
        try node.store.closeForeignTransactions()
        try expectOnly(
            "reused names", .warning, "note.text was the name of another column, which is note.tag now",
            "martlet alter",
            at: node.path)
    }

    @Test func doctorFindsADamagedIndex() throws {
        let node = try healthy()
        try tamper(
            node, "UPDATE sqlite_schema SET sql = 'CREATE INDEX note_text ON note(tag)' WHERE name = 'note_text'")
        try expectOnly("integrity", .problem, "note_text", "Restore", at: node.path)
    }

    @Test func doctorFindsADanglingReference() throws {
        let node = try healthy()
        try tamper(node, "UPDATE note SET owner = 99")
        try expectOnly("foreign keys", .warning, "1 rows refer", "foreign_key_check", at: node.path)
    }

    /// The doctor still examines the other references.
    @Test func doctorNamesAForeignKeyThatSQLiteCannotCheck() throws {
        let schema =
            "\(Self.schema); CREATE TABLE code(text TEXT); "
            + "CREATE TABLE use(id INTEGER PRIMARY KEY, code REFERENCES code(text))"
        let node = try node("a", schema: schema)
        try tamper(node, "INSERT INTO use VALUES (1, 'x'); INSERT INTO note(owner) VALUES (99)")
        let found = try findings(node.path).filter { $0.check == "foreign keys" }
        #expect(found.map(\.level) == [.warning, .warning])
        #expect(found.first?.message.contains("1 rows refer") == true, "\(found)")
        #expect(found.last?.message.contains("of use:") == true, "\(found)")
        #expect(found.last?.remedy?.contains("unique index") == true, "\(found)")
    }

    /// Only its program can check such a table. The doctor still finds damage of another index.
    @Test(
        arguments: [
            "CREATE INDEX owner_name ON owner(name COLLATE own)", "CREATE INDEX owner_name ON owner(own(name))",
            "CREATE TABLE apart(a CHECK (own(a)))",
        ], [false, true])
    func doctorSkipsATableThatOnlyItsProgramCanCheck(statement: String, isDamaged: Bool) throws {
        let node = try healthy()
        try node.store.close()
        try node.engine.close()
        let queue = try DatabaseQueue(path: node.path)
        try queue.writeWithoutTransaction { db in
            db.add(collation: DatabaseCollation("own") { $0.compare($1) })
            db.add(function: DatabaseFunction("own", argumentCount: 1, pure: true) { $0[0] })
            try db.execute(sql: statement)
        }
        try queue.close()
        if isDamaged {
            let text = "UPDATE sqlite_schema SET sql = 'CREATE INDEX note_text ON note(tag)' WHERE name = 'note_text'"
            try DatabaseQueue(path: node.path).writeWithoutTransaction {
                try $0.execute(sql: "PRAGMA writable_schema = ON; \(text)")
            }
        }
        let found = try findings(node.path).filter { $0.check == "integrity" }
        #expect(found.count == (isDamaged ? 1 : 0))
        #expect(found.allSatisfy { $0.message.contains("note_text") })
    }

    @Test func doctorFindsAnotherJournalMode() throws {
        let store = try directory.noteStore("j")
        try store.close()
        try DatabaseQueue(path: store.path).writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA journal_mode = DELETE")
        }
        try expectOnly("journal", .problem, "delete", "journal_mode = WAL", at: store.path)
    }

    @Test func doctorFindsAMissingTrigger() throws {
        let node = try healthy()
        let trigger = try #require(
            try node.rows("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'note' LIMIT 1").first)
        try tamper(node, "DROP TRIGGER \(trigger)")
        try expectOnly("triggers", .problem, "note", "recreates them", at: node.path)
    }

    @Test func p46DoctorNamesRowsWithNullInTheirKey() throws {
        let node = try node("n", schema: "CREATE TABLE item(sku TEXT PRIMARY KEY, n INT)")
        try node.foreignWrite("INSERT INTO item VALUES (NULL, 1), ('S', 2)")
        try expectOnly("identity", .warning, "1 row of item", "Set the key's columns", at: node.path)
        try node.foreignWrite("UPDATE item SET sku = 'T' WHERE sku IS NULL")
        #expect(try findings(node.path).isEmpty)
    }

    @Test func p50DoctorNamesTextThatTheFileCannotStore() throws {
        let schema = "CREATE TABLE word(text TEXT PRIMARY KEY NOT NULL)"
        let wide = directory.path("wide.sqlite")
        try ForeignProgram.shell.run("PRAGMA encoding = 'UTF-16';" + schema, on: wide)
        let a = try node("a", schema: schema)
        let b = try TestNode("b", bus: bus, directory: directory, schema: "", copyOf: wide)
        try a.foreignWrite("INSERT INTO word VALUES (CAST(x'61ff' AS TEXT))")
        try exchange([a, b])
        let found = try findings(b.path).filter { $0.check != "permissions" }
        #expect(found.map(\.check) == ["parked", "encoding"])
        #expect(found.last?.message.contains("UTF-16") == true && found.last?.remedy?.contains("UTF-8") == true)
    }

    @Test func doctorFindsADroppedTable() throws {
        let node = try healthy()
        try node.foreignWrite("DROP TABLE note")
        _ = try node.store.write { _ in }
        try expectOnly("tables", .warning, "note", "Attach", at: node.path)
    }

    @Test func doctorFindsAFileThatEveryUserCanRead() throws {
        let node = try healthy()
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: node.path)
        try expectOnly("permissions", .warning, "mode 0644", "chmod", at: node.path)
    }

    @Test(.enabled(if: geteuid() != 0, "root can write everything")) func doctorFindsAFileThatCannotBeWritten() throws {
        let node = try healthy()
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: node.path)
        try expectOnly("writing", .problem, node.path, "agent's user", at: node.path)
    }

    @Test func doctorFindsACopiedStore() throws {
        let node = try healthy()
        try RecordedPlace(node.engine.session).record(
            StorePlace(machine: "another one", path: "/elsewhere", inode: 1).text)
        try expectOnly("copy", .problem, "copy of a store", "martlet fork", at: node.path)
    }

    @Test func doctorFindsQuarantinedMessages() throws {
        let node = try healthy()
        try node.quarantineNonsense()
        try expectOnly("quarantine", .problem, "1 message can", "martlet quarantine", at: node.path)
    }

    /// The doctor's commands can be copied into a shell, whatever the store is called.
    @Test func thePathOfAStoreIsOneWordOfTheDoctorsCommands() throws {
        let node = try node("ann's laptop")
        try node.quarantineNonsense()
        let word = "'\(node.path.replacing("'", with: "'\\''"))'"
        try expectOnly("quarantine", .problem, "1 message can", "martlet quarantine \(word)", at: node.path)
    }

    @Test func doctorFindsRemoteChangesOfAnUnknownTable() throws {
        let (a, b) = (try node("a"), try node("b", schema: "CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT)"))
        try a.write("INSERT INTO owner VALUES (1, 'ann'); INSERT INTO note VALUES (1, 'one', 'x', 1)")
        try exchange([a, b])
        let found = try findings(b.path)
        #expect(found.map(\.check) == ["parked", "schema"])
        #expect(found.allSatisfy { $0.level == .warning })
        #expect(found.last?.message.contains("note") == true, "\(found)")
        #expect(found.last?.remedy?.contains("martlet alter") == true)
    }

    @Test func doctorFindsMissingTransactions() throws {
        let node = try healthy()
        let elsewhere = InMemoryBus(topic: "t", partitionCount: 1)
        let other = try TestNode("d", bus: elsewhere, directory: directory, schema: Self.schema)
        for name in ["eve", "fay"] {
            try other.write("INSERT INTO owner(name) VALUES ('\(name)')")
            try other.publish()
        }
        // Apply only the second message.
        let messages = try elsewhere.makeConsumer()
        try messages.assign([PartitionPosition(partition: 0, offset: 1)])
        _ = try node.engine.apply(try messages.poll(maxCount: 10, timeout: .milliseconds(1)).messages, topic: "t")
        try expectOnly("gaps", .problem, "d", "republishes them", at: node.path)
    }

    @Test(arguments: [(2500, 2600, "2500 ms ahead"), (-9000, -8000, "8000 ms behind")])
    func doctorFindsAWrongClock(low: Int, high: Int, text: String) throws {
        let node = try healthy()
        try node.store.writeOwnTables { db in
            try Meta.set(db, SyncMeta.clockOffsetLow, low)
            try Meta.set(db, SyncMeta.clockOffsetHigh, high)
        }
        try expectOnly("clock", .problem, text, "chrony", at: node.path)
    }

    @Test func doctorFindsAFullDisk() throws {
        let node = try healthy()
        let found = try StoreDoctor.examine(path: node.path, minFreeBytes: .max).filter { $0.check == "disk" }
        #expect(found.map(\.level) == [.warning])
        #expect(found.first?.message.contains("MiB") == true)
    }

    // MARK: The topic

    private func topic(
        _ settings: [String: String]? = nil, replicas: [Int32] = [1], inSync: [Int32] = [1], leader: Int32 = 1,
        brokers: Int = 1
    ) -> KafkaTopicDescription {
        KafkaTopicDescription(
            name: "t",
            partitions: [
                .init(id: 0, leader: leader, replicas: replicas, inSyncReplicas: inSync, watermarks: nil)
            ],
            brokers: Dictionary(uniqueKeysWithValues: (1...brokers).map { (Int32($0), "b:\($0)") }),
            settings: settings)
    }

    /// The findings on a topic other than `ok`, for a node with the default configuration.
    private func judged(
        _ topic: KafkaTopicDescription, _ change: (inout AgentConfiguration) -> Void = { _ in }
    ) -> [String] {
        var configuration = AgentConfiguration()
        change(&configuration)
        return BrokerDoctor.judge(topic, configuration).filter { $0.level != .ok }
            .map { "\($0.level) \($0.check): \($0.message). \($0.remedy ?? "")" }
    }

    @Test func aTopicOfMartletsOnADefaultBrokerHasNoFindings() {
        var settings = KafkaTopicSpecification(name: "t", partitionCount: 1).settings
        settings["retention.ms"] = "604800000"
        settings["max.message.bytes"] = "1048588"
        #expect(judged(topic(settings)) == [])
        #expect(judged(topic()) == [])
        #expect(BrokerDoctor.judge(topic(), AgentConfiguration()).map(\.message) == ["t has 1 partition"])
        settings["max.message.bytes"] = "100000"
        #expect(judged(topic(settings)) == [], "what is larger goes in parts")
        settings["retention.ms"] = "-1"
        #expect(judged(topic(settings)) { $0.snapshot.interval = .zero } == [])
    }

    @Test(arguments: [
        (["message.timestamp.type": "CreateTime"], "warning topic timestamps"),
        (["cleanup.policy": "compact,delete"], "problem topic cleanup"),
        (["max.message.bytes": "1500"], "problem topic size"),
        (["retention.ms": "86400000"], "warning topic retention"),
    ]) func doctorFindsAnUnsuitableTopicSetting(settings: [String: String], finding: String) {
        let found = judged(topic(settings))
        #expect(found.count == 1 && found[0].hasPrefix(finding), "\(found)")
    }

    @Test func doctorFindsRetentionWithoutSnapshots() {
        let found = judged(topic(["retention.ms": "604800000"])) { $0.snapshot.interval = .zero }
        #expect(found.count == 1 && found[0].contains("7.0 days") && found[0].contains("snapshot.interval"), "\(found)")
    }

    @Test func doctorFindsPartitionsWithTooFewBrokers() {
        #expect(judged(topic(leader: -1)).map { $0.prefix(24) } == ["problem topic partitions"])
        let behind = judged(topic(replicas: [1, 2], inSync: [1], brokers: 2))
        #expect(behind.count == 1 && behind[0].contains("too few in-sync replicas"), "\(behind)")
        let single = judged(topic(brokers: 3))
        #expect(single.count == 1 && single[0].contains("3 brokers"), "\(single)")
    }

    @Test func doctorFindsAnUnreachableBroker() throws {
        var configuration = AgentConfiguration()
        configuration.kafka.bootstrapServers = ["127.0.0.1:1"]
        let gone = BrokerDoctor.examine(configuration, log: quietLog, timeout: .milliseconds(300))
        #expect(gone.map(\.check) == ["broker"] && gone[0].level == .problem && gone[0].remedy?.isEmpty == false)
        let broker = try EmbeddedBroker(topics: ["there": 1], logger: quietLog)
        configuration.kafka.bootstrapServers = broker.bootstrapServers
        configuration.kafka.topic = "there"
        let there = BrokerDoctor.examine(configuration, log: quietLog)
        #expect(there.contains { $0.check == "topic" } && there.allSatisfy { $0.level == .ok })
    }
}
