import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Bugs that the simulator found, each reduced to a short test.
@Suite struct FoundBySimulationTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    /// Messages as they are on the topic, with their checksums.
    private func sent(_ node: TestNode, _ sql: String...) throws -> [IncomingMessage] {
        for sql in sql { try node.write(sql) }
        try node.publish()
        return try messages(lab.bus)
    }

    @Test func aCachedAnswerAboutAFormerTopicIsIgnored() throws {
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        // The answer arrives, but the node hasn't looked at it yet when the topic is lost and read for the first time.
        a.publisher.step()
        lab.bus.wipe()
        try a.consume()
        let b = try lab.node("b")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value=1")
    }

    @Test func aMessageThatWasCutBetweenTwoChangesIsNoTransaction() throws {
        let a = try lab.node("a")
        let message = try sent(a, "INSERT INTO setting VALUES ('k', 1), ('l', 2)")[0]
        let parts = (1..<message.payload.count).map { Array(message.payload.prefix($0)) }
        // Without the checksum, one of the parts is a transaction of one change.
        #expect(parts.contains { (try? PublishedTransaction(decoding: $0))?.changes.count == 1 })
        let b = try lab.node("b")
        for part in parts {
            var cut = message
            cut.payload = part
            #expect(try b.receive([cut]).quarantined == 1)
        }
        #expect(try b.rows("SELECT count(*) FROM setting") == ["0"])
        #expect(try b.receive([message]).applied == 1)
        #expect(try b.rows("SELECT count(*) FROM setting") == ["2"])
    }

    @Test func aCorruptedMessageStaysInTheQuarantineUntilTheRightOneComes() throws {
        let a = try lab.node("a") { $0.encoding = .json }
        let b = try lab.node("b")
        let message = try sent(a, "INSERT INTO setting VALUES ('k', 'good')")[0]
        var changed = message
        changed.payload = Array(String(decoding: message.payload, as: UTF8.self).replacing("good", with: "evil").utf8)
        #expect(try b.receive([changed]).quarantined == 1)
        #expect(try b.engine.retryQuarantined().kept == 1)
        #expect(try b.gaps() == [1...1])
        #expect(try b.receive([message]).applied == 1)
        #expect(try b.engine.retryQuarantined().superseded == 1)
        try expectBoth(a, b, are: "setting key='k' value='good'")
        #expect(try b.gaps() == [])
    }

    @Test func aCorruptedChunkLeavesTheOtherChunksInPlace() throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        let b = try lab.node("b")
        let chunks = try sent(a, "INSERT INTO setting VALUES ('k', zeroblob(2500))")
        #expect(chunks.count == 3)
        var changed = chunks[2]
        changed.payload[0] ^= 1
        #expect(try b.receive([chunks[0], chunks[1], changed]).quarantined == 1)
        #expect(try b.receive([chunks[2]]).applied == 1)
        #expect(try b.rows("SELECT length(value) FROM setting") == ["2500"])
    }

    @Test func aNodeRepublishesItsOwnMessageThatWasCorrupted() throws {
        let a = try lab.node("a")
        var all = try sent(a, "INSERT INTO setting VALUES ('k', 1)")
        all[0].payload.removeLast()
        lab.bus.wipe()
        try lab.send(all)
        let b = try lab.node("b")
        try exchange([a, b])
        #expect(try b.rows("SELECT key, value FROM setting") == ["k|1"])
    }

    /// Two nodes insert a row, one of them before its table has the column: the timestamp of its insert must not count
    /// as that of the column.
    @Test func aColumnThatIsAddedLaterTakesTheValueThatAnotherNodeInserted() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        let alter = "ALTER TABLE setting ADD COLUMN weight INTEGER"
        try b.store.alter(sql: alter)
        try b.write("INSERT INTO setting(key, value, weight) VALUES ('k', 1, 816)")
        try a.write("INSERT INTO setting(key, value) VALUES ('k', 2)")
        try a.publish()
        try a.store.alter(sql: alter)
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value=2 weight=816")
    }

    /// The changes are stamped after all of them were made: by then, the table has the row under its new key.
    @Test func aRowWhoseKeyChangedMeanwhileFollowsARenameOfItsTarget() throws {
        var request = AttachRequest()
        request.identities = ["project": ["code"], "task": ["project", "title"]]
        let lab = try Lab(
            """
            CREATE TABLE project(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE);
            CREATE TABLE note(id INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES project(id), text TEXT);
            CREATE TABLE task(id INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES project(id),
              title TEXT NOT NULL, weight INTEGER, UNIQUE(project, title));
            """, request: request)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO project VALUES (1, 'old')")
        try a.write("INSERT INTO note VALUES (12, 1, 'n'), (13, 1, 'gone')")
        try a.write("INSERT INTO task VALUES (12, 1, 't', 5), (13, 1, 'gone', 6)")
        try a.write("UPDATE project SET code = 'new'")
        for table in ["note", "task"] {
            try a.write("UPDATE \(table) SET id = 6 WHERE id = 12")
            // Another row now has the former key of the row, and the next key, too.
            try a.write("DELETE FROM \(table) WHERE id = 13")
            try a.write("UPDATE \(table) SET id = 13 WHERE id = 6")
        }
        try a.write("INSERT INTO note VALUES (12, 1, 'late')")
        try a.write("INSERT INTO task VALUES (12, 1, 'late', 7)")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                note project=->'new' text='late'
                note project=->'new' text='n'
                project code='new'
                task project=->'new' title='late' weight=7
                task project=->'new' title='t' weight=5
                """)
    }

    /// The broker loses the end of a transaction in chunks, and the next messages take its place.
    @Test func aChunkThatTheBrokerLostIsRepublished() throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.write("INSERT INTO setting VALUES ('k', zeroblob(2500))")
        try exchange([a])
        try lab.rewrite { Array($0.dropLast()) }
        try a.write("INSERT INTO setting VALUES ('l', 1)")
        try a.publish()
        try a.restart()
        let b = try lab.node("b")
        try exchange([a, b])
        #expect(try b.rows("SELECT key, length(value) FROM setting ORDER BY key") == ["k|2500", "l|1"])
        for node in [a, b] { #expect(try node.chunks() == []) }
    }

    /// A topic that is wiped, written to, and pruned looks as if it had only been pruned.
    @Test func messagesLostBeforeTheTopicMovedOnAreRepublished() throws {
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        lab.bus.wipe()
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        try a.publish()
        let b = try lab.node("b")
        try b.consume()
        lab.bus.truncate(partition: 0, upTo: 1)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                setting key='k' value=1
                setting key='l' value=2
                """)
        #expect(try b.gaps() == [])
    }

    /// The republished message has the same offset as before, after messages of others.
    @Test func theSameMessageAtTheSameOffsetOfAnotherTopicIsNotTrusted() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        try exchange([a])
        // The acknowledgement of the second message was lost.
        try PublishProgress(a.engine.session).acknowledge(through: 1)
        lab.bus.wipe()
        try b.write("INSERT INTO setting VALUES ('m', 3)")
        try b.publish()
        try a.restart()
        try a.publish()
        #expect(try messages(lab.bus).map(\.position.offset) == [0, 1])
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                setting key='k' value=1
                setting key='l' value=2
                setting key='m' value=3
                """)
    }

    /// A column's value from before a delete doesn't count, even if the row lives on by an insert that doesn't set the
    /// column.
    @Test(arguments: [false, true]) func aColumnFromBeforeADeleteIsCleared(deleteComesFirst: Bool) throws {
        let alter = "ALTER TABLE setting ADD COLUMN weight INTEGER DEFAULT 7"
        let a = try lab.node("a")
        let b = try lab.node("b")
        let c = try lab.node("c")
        let reader = try lab.node("reader")
        for node in [a, reader] { try node.store.alter(sql: alter) }
        try a.write("INSERT INTO setting VALUES ('k', 'a', 816)")
        try b.write("INSERT INTO setting VALUES ('k', 'b')")
        try b.write("DELETE FROM setting")
        try c.write("INSERT INTO setting VALUES ('k', 'c')")
        var batches: [[IncomingMessage]] = []
        for node in [a, b, c] {
            lab.bus.wipe()
            try node.publish()
            batches.append(try messages(lab.bus))
        }
        try reader.receive(batches[0])
        for batch in deleteComesFirst ? [batches[1], batches[2]] : [batches[2], batches[1]] {
            try reader.receive(batch)
        }
        try expectState(reader, is: "setting key='k' value='c' weight=7")
    }

    private func memberships() throws -> Lab {
        var request = AttachRequest()
        request.identities = ["project": ["code"]]
        return try Lab(
            """
            CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE project(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE);
            CREATE TABLE membership(person INTEGER NOT NULL REFERENCES person(id) ON UPDATE CASCADE,
              project INTEGER NOT NULL REFERENCES project(id) ON UPDATE CASCADE, role TEXT,
              PRIMARY KEY(person, project));
            """, request: request)
    }

    /// The row is found by keys that its targets had at that time, and no longer have.
    @Test func aRowWhoseIDComesFromRowsWithChangedKeysIsPublished() throws {
        let lab = try memberships()
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO person VALUES (1, 'p'); INSERT INTO project VALUES (1, 'old')")
        try a.write("INSERT INTO membership VALUES (1, 1, 'lead')")
        try a.write("UPDATE project SET code = 'new'; UPDATE person SET id = 5; UPDATE project SET id = 6")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                membership person=->'p' project=->'new' role='lead'
                person name='p'
                project code='new'
                """)
    }

    /// One transaction renames a row, and gives its former name to another row: a row whose ID is made from it is
    /// deleted when that name leads nowhere, or to the other row.
    @Test func aNameThatIsReusedAtOnceLeavesNoRowBehind() throws {
        let lab = try memberships()
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO person VALUES (1, 'p'); INSERT INTO project VALUES (1, 'k1')")
        try a.write("INSERT INTO membership VALUES (1, 1, 'lead')")
        try exchange([a, b])
        try a.write("UPDATE project SET code = 'k2'; INSERT INTO project VALUES (2, 'k1')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                membership person=->'p' project=->'k2' role='lead'
                person name='p'
                project code='k1'
                project code='k2'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    private static let people = """
        CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE profile(id INTEGER PRIMARY KEY REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE,
          bio TEXT);
        CREATE TABLE seat(id INTEGER PRIMARY KEY, place TEXT,
          person INTEGER REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE);
        CREATE TABLE member(person INTEGER NOT NULL REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE,
          team TEXT NOT NULL, role TEXT, PRIMARY KEY(person, team));
        """

    /// Seed 3030: another program uses REPLACE. The cascaded changes are in the log before the delete of the row whose
    /// key is taken.
    @Test func aRowThatFollowsADisplacingRowDoesNotGetTheDisplacedRowsID() throws {
        let lab = try Lab(Self.people)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO person VALUES (1, 'p'), (3, 'q')")
        try a.write("INSERT INTO profile VALUES (1, 't'), (3, 'gone')")
        try a.write("INSERT INTO seat VALUES (7, 's', 1), (8, 'gone', 3)")
        try a.write("INSERT INTO member VALUES (1, 'k', 'one'), (3, 'k', 'gone')")
        try exchange([a, b])
        try a.foreignWrite("UPDATE OR REPLACE person SET id = 3 WHERE id = 1", foreignKeys: true)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                member person=->'p' team='k' role='one'
                person name='p'
                profile id=->'p' bio='t'
                seat place='s' person=->'p'
                """)
        #expect(try StoreDigest.compute(a.store).entities == StoreDigest.compute(b.store).entities)
    }

    /// One statement makes the row refer to the row that the next statement displaces: that row's cascade deletes it.
    @Test func aRowThatReferredToADisplacedRowIsDeletedWithIt() throws {
        let lab = try Lab(Self.people)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO person VALUES (1, 'p'), (3, 'q')")
        try a.write("INSERT INTO member VALUES (1, 'k', 'one')")
        try exchange([a, b])
        try a.foreignWrite(
            "UPDATE member SET person = 3; UPDATE OR REPLACE person SET id = 3 WHERE id = 1", foreignKeys: true)
        try exchange([a, b])
        try expectBoth(a, b, are: "person name='p'")
        #expect(try StoreDigest.compute(a.store).entities == StoreDigest.compute(b.store).entities)
    }
}
