import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Changes that identify no row: no node makes them, and a node that receives one skips only that change.
@Suite struct ChangeWithoutIdentityTests {
    private static let tags = """
        CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INT);
        CREATE TABLE other(id INTEGER PRIMARY KEY, text TEXT);
        """

    // MARK: Causes

    @Test(
        arguments: [
            "INSERT OR IGNORE INTO tag(name) VALUES ('x')",
            "INSERT INTO tag(name) VALUES ('x') ON CONFLICT DO NOTHING",
            "INSERT INTO tag(name) VALUES ('x') ON CONFLICT(name) DO UPDATE SET n = 2",
        ])
    func p38AStaleNoteDeletesNothing(_ statement: String) throws {
        let lab = try Lab(Self.tags)
        let a = try lab.node("a")
        let b = try lab.node("b")
        // The integer key of the deleted row is not the next one.
        try a.write("INSERT INTO tag(name, n) VALUES ('x', 1), ('w', 0)")
        try exchange([a, b])
        try b.foreignWrite(statement)
        try exchange([a, b])
        try a.write("DELETE FROM tag WHERE name = 'x'")
        try exchange([a, b])
        try b.foreignWrite("INSERT INTO tag(name) VALUES ('y'); INSERT INTO other(text) VALUES ('with it')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                other text='with it'
                tag name='w' n=0
                tag name='y' n=NULL
                """)
        for node in [a, b] {
            #expect(try node.store.quarantined() == [])
            #expect(try node.tombstones().allSatisfy { !$0.identity.bytes.isEmpty })
        }
        #expect(try b.store.fetchHistory().flatMap(\.changes).filter { $0.kind == .delete }.count == 1)
        try expectSame([a, b])
    }

    private static let keyed = "CREATE TABLE tag(name TEXT PRIMARY KEY NOT NULL, code TEXT UNIQUE)"

    @Test func p38ARowThatOthersInsertedAgainIsNotDeleted() throws {
        let lab = try Lab(Self.keyed)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO tag VALUES ('K', 'c')")
        try exchange([a, b])
        try b.foreignWrite("INSERT OR IGNORE INTO tag VALUES ('L', 'c')")
        try a.write("DELETE FROM tag")
        try exchange([a, b])
        try a.write("INSERT INTO tag VALUES ('K', 'again')")
        try a.publish()
        try b.foreignWrite("INSERT INTO tag VALUES ('Z', 'z')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                tag name='K' code='again'
                tag name='Z' code='z'
                """)
        try expectSame([a, b])
    }

    @Test func p38APendingRowIsDeletedByNobody() throws {
        let lab = try Lab(Self.keyed)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try b.write("INSERT INTO tag VALUES ('X', 'c')")
        try a.write("INSERT INTO tag VALUES ('W', 'c')")
        try b.foreignWrite("INSERT OR IGNORE INTO tag VALUES ('Q', 'c')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                tag name='W' code='c'
                pending unique tag name='X' code='c'
                """)
        try b.foreignWrite("INSERT INTO tag VALUES ('Z', 'z')")
        try exchange([a, b])
        try a.write("DELETE FROM tag WHERE name = 'W'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                tag name='X' code='c'
                tag name='Z' code='z'
                """)
        try expectSame([a, b])
    }

    /// Triggers of an earlier version may have logged such a delete right before this version was installed.
    @Test func p38ADeleteOfAMissingRowIsNotPublished() throws {
        for schema in [Self.tags, Self.keyed] {
            let lab = try Lab(schema)
            let a = try lab.node("a")
            let b = try lab.node("b")
            try a.write("INSERT INTO tag(name) VALUES ('K')")
            try exchange([a, b])
            try a.write("DELETE FROM tag")
            try exchange([a, b])
            try a.write("INSERT INTO tag(name) VALUES ('K')")
            try a.publish()
            let entity = try b.entity("tag").id
            try b.foreignWrite(
                "INSERT INTO _martlet_log(e, r, k, t, c1) VALUES (\(entity), 77, 3, \(b.clock.milliseconds), 'K')")
            try exchange([a, b])
            try expectBoth(a, b, are: "tag name='K' \(schema == Self.tags ? "n" : "code")=NULL")
            #expect(try b.outboxCount() == 0)
            try expectSame([a, b])
        }
    }

    // MARK: Changes that are on the topic already

    private func removingIdentity(_ message: IncomingMessage, _ identity: String) -> IncomingMessage {
        var message = message
        let text = String(decoding: message.payload, as: UTF8.self)
        message.payload = Array(text.replacing(#""identity":[{"text":"k"}]"#, with: identity).utf8)
        return message
    }

    @Test(arguments: [
        #""identity":[]"#, #""identity":[{"null":true}]"#, #""identity":[{"real":"NaN"}]"#, #""formerEntities":[]"#,
    ])
    func p38AChangeWithoutIdentityIsSkippedAlone(_ identity: String) throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.encoding = .json }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('j', 1), ('k', 2), ('l', 3)")
        try a.write("INSERT INTO setting VALUES ('m', 4)")
        try a.publish()
        let sent = try lab.messages()
        let messages = sent.map { removingIdentity($0, identity) }
        #expect(messages != sent)
        let report = try b.receive(messages)
        #expect(report.applied == 2 && report.quarantined == 1)
        try expectState(
            b,
            is: """
                setting key='j' value=1
                setting key='l' value=3
                setting key='m' value=4
                quarantined 1
                """)
        #expect(try b.gaps() == [])
        #expect(try b.store.quarantined().map(\.reason) == ["A change of setting has no identity."])
        // The message remains the only one in the quarantine.
        let retried = try b.engine.retryQuarantined()
        #expect(retried.kept == 1 && retried.applied == 0)
        #expect(try b.store.quarantined().count == 1)
        // The other changes have their own clocks.
        let times = try insertionTimes(b)
        #expect(try a.store.audit().isClean && b.store.audit().isClean)
        var expected = try insertionTimes(a)
        expected.remove(at: 1)
        #expect(times.count == 3 && times == expected)
        let kept = try #require(try b.store.quarantined().first?.id)
        #expect(try b.store.discardQuarantined(kept)?.closedGap == false)
    }

    /// Another program that writes to the topic may say so of any text.
    @Test func anIdentityOfRawTextThatIsValidIsTheText() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.encoding = .json }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 2)")
        try a.publish()
        let sent = try lab.messages()
        let messages = sent.map { removingIdentity($0, #""identity":[{"rawText":"aw=="}]"#) }
        #expect(messages != sent)
        #expect(try b.receive(messages).applied == 1)
        try expectBoth(a, b, are: "setting key='k' value=2")
        #expect(try insertionTimes(b) == insertionTimes(a))
        #expect(try b.store.audit().isClean)
    }

    /// The column would store 1 in place of 1.0, and 1.0 in place of 1, and the row would have another identity.
    @Test(arguments: [("NUMERIC", true), ("REAL", false)])
    func anIdentityThatTheColumnWouldChangeWaits(type: String, isInteger: Bool) throws {
        let (integer, real) = (#"{"integer":"1"}"#, #"{"real":1.0}"#)
        let (sent, received) = isInteger ? (integer, real) : (real, integer)
        let lab = try Lab("CREATE TABLE m(k \(type) NOT NULL PRIMARY KEY, v) WITHOUT ROWID")
        let a = try lab.node("a") { $0.encoding = .json }
        let b = try lab.node("b")
        try a.write("INSERT INTO m VALUES (1, 'x')")
        try a.publish()
        let messages = try lab.messages().map { message in
            var message = message
            let text = String(decoding: message.payload, as: UTF8.self)
            #expect(text.contains(sent))
            message.payload = Array(text.replacing(sent, with: received).utf8)
            return message
        }
        try b.receive(messages)
        #expect(try b.rows("SELECT k FROM m") == [])
        #expect(try b.parked() == ["constraint"])
        #expect(try b.store.audit().isClean)
    }

    /// When the settings were inserted, in the order of their stable IDs.
    private func insertionTimes(_ node: TestNode) throws -> [HybridTime?] {
        try node.records(of: "setting").sorted { $0.identity.bytes.lexicographicallyPrecedes($1.identity.bytes) }
            .map(\.clocks.inserted?.time)
    }

    /// Gives the node a tombstone that earlier versions may have left.
    private func plant(_ node: TestNode) throws {
        try node.foreignWrite(
            """
            INSERT INTO _martlet_tombstones SELECT id, x'', (SELECT value FROM _martlet_meta WHERE key = 'clock'),
              (SELECT max(id) FROM _martlet_nodes) FROM _martlet_entities WHERE name = 'setting';
            """)
    }

    @Test func p38ASnapshotWithADeleteOfNoRowIsLoaded() throws {
        let lab = try SnapshotLab(partitions: 1)
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1), ('l', 2), ('m', 3), ('n', 4)")
        try exchange([a])
        try plant(a)
        try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        try b.consume()
        try expectState(
            b,
            is: """
                setting key='k' value=1
                setting key='l' value=2
                setting key='m' value=3
                setting key='n' value=4
                quarantined 1
                """)
        #expect(try b.store.quarantined().map(\.reason) == ["A change of setting has no identity."])
        #expect(try b.tombstones().isEmpty)
        #expect(try b.engine.retryQuarantined().kept == 1)
    }

    @Test func p38ACheckWithADeleteOfNoRowRepairsTheOtherRows() throws {
        let lab = try AntiEntropyLab()
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.node.write("INSERT INTO setting VALUES ('k', 1), ('l', 2)")
        try exchange([a.node, b.node])
        try plant(a.node)
        try b.damage("DELETE FROM setting WHERE key = 'k'")
        try check([a, b])
        #expect(try b.found() == ["missingRow repaired setting"])
        #expect(try b.node.rows("SELECT key FROM setting ORDER BY key") == ["k", "l"])
        #expect(b.progress.ignored == 0 && a.progress.ignored == 0)
    }

    // MARK: Stores of earlier versions

    /// Makes a store look as the previous version may have left it.
    private func downgrade(_ node: TestNode) throws {
        try plant(node)
        try node.foreignWrite(
            """
            INSERT INTO _martlet_retired SELECT id, 1, 1, x'' FROM _martlet_entities WHERE name = 'setting';
            INSERT INTO _martlet_lasting SELECT id, x'' FROM _martlet_entities WHERE name = 'setting';
            UPDATE _martlet_outbox SET payload =
              CAST(replace(CAST(payload AS TEXT), '"identity":[{"text":"k"}]', '"identity":[]') AS BLOB);
            \(OldFormat.sql(store: 7, sync: 8))
            INSERT INTO _martlet_replaced(e, r) VALUES (1, 77);
            """)
    }

    @Test func p38AStoreOfAnEarlierVersionIsRepaired() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.encoding = .json }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try a.publish()
        try lab.rewrite { $0.map { removingIdentity($0, #""identity":[]"#) } }
        try a.write("INSERT INTO setting VALUES ('j', 1), ('l', 3)")
        try a.write("UPDATE setting SET value = 2 WHERE key = 'k'; INSERT INTO setting VALUES ('m', 4)")
        try runUntilNothingMoves("enqueuing") { try a.engine.session.enqueueSome().hasMore }
        try downgrade(a)
        let before = try (1...3).map { try a.payload($0) }
        try a.restart()
        for table in ["_martlet_tombstones", "_martlet_retired", "_martlet_lasting", "_martlet_replaced"] {
            #expect(try a.rows("SELECT count(*) FROM \(table)") == ["0"], "\(table)")
        }
        // The acknowledged message keeps its bytes, and so does the one whose changes all have identities.
        let after = try (1...3).map { try a.payload($0) }
        #expect(try a.outboxCount() == 3)
        #expect(after[0] == before[0] && after[1] == before[1] && after[2] != before[2])
        #expect(try !WireFormat.decode(after[2]).hasChangeWithoutIdentity)
        try exchange([a, b])
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["j", "l", "m"].sorted())
        // The first message is on the topic unchanged.
        #expect(try b.store.quarantined().map(\.reason) == ["A change of setting has no identity."])
        #expect(try a.store.audit().isClean)
        try a.foreignWrite("INSERT INTO trip(name) VALUES ('captured as ever')")
        try exchange([a, b])
        #expect(try b.rows("SELECT name FROM trip") == ["captured as ever"])
    }

    /// The message was in flight with its former bytes when the store was repaired.
    @Test func p38AMessageInFlightDuringTheRepairStillBelongsToItsNode() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.encoding = .json }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1), ('l', 2)")
        try a.publish()
        try lab.rewrite { $0.map { removingIdentity($0, #""identity":[]"#) } }
        try PublishProgress(a.engine.session).acknowledge(through: 0)
        try downgrade(a)
        try a.restart()
        try exchange([a, b])
        #expect(try b.rows("SELECT key FROM setting") == ["l"])
        #expect(try b.gaps() == [])
        #expect(try a.engine.confirmed() == 1)
    }
}

extension TestNode {
    /// The payload of the outbox entry with this sequence.
    fileprivate func payload(_ sequence: Int64) throws -> [UInt8] {
        try store.read { try Outbox.payload($0, sequence) } ?? []
    }
}
