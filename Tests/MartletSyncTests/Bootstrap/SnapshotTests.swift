import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Late joiners: nodes that start when the topic no longer has all messages.
@Suite struct SnapshotTests {
    let lab: SnapshotLab

    init() throws { lab = try SnapshotLab() }

    private func write(_ node: TestNode, _ range: ClosedRange<Int>) throws {
        for number in range {
            try node.write(
                """
                INSERT INTO trip(name, budget) VALUES ('\(node.name)\(number)', \(number).5);
                INSERT INTO stop(trip, place) VALUES (last_insert_rowid(), 'place \(number)');
                INSERT INTO note(trip, text) SELECT max(id), 'note \(number)' FROM trip;
                INSERT INTO setting VALUES ('\(node.name)\(number)', x'0\(number)');
                """)
        }
    }

    @Test(arguments: [1, 4]) func aNewNodeGetsTheMessagesThatTheTopicHasDropped(partitions: Int) throws {
        let lab = try SnapshotLab(partitions: partitions)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try write(a, 1...5)
        try write(b, 1...5)
        try exchange([a, b])
        try a.write("UPDATE trip SET budget = 0 WHERE name = 'b2'; DELETE FROM trip WHERE name = 'a3'")
        try b.write("DELETE FROM setting WHERE key = 'b4'; UPDATE setting SET value = 'new' WHERE key = 'b5'")
        try exchange([a, b])
        try a.makeSnapshot()
        try lab.prune()
        // The node reads everything after the snapshot from the topic.
        try b.write("INSERT INTO setting VALUES ('after', 1); DELETE FROM setting WHERE key = 'a1'")
        try exchange([a, b])
        let c = try lab.node("c")
        try c.consume()
        try expectSame([a, b, c])
        #expect(try c.rows("SELECT count(*) FROM setting") == ["9"])
        #expect(try c.rows("SELECT count(*) FROM setting WHERE key = 'after'") == ["1"])
        let history = try c.store.fetchHistory(HistoryQuery(author: .notEqual(TransactionAuthor.sync)))
        #expect(history.flatMap(\.changes).isEmpty)
        #expect(try c.outboxCount() == 0)
        // From here on, it works like the other nodes.
        try c.write("UPDATE trip SET name = 'of c' WHERE name = 'a1'")
        try exchange([a, b, c])
        try expectSame([a, b, c])
    }

    @Test func aLoadedSnapshotHasTheClocksTombstonesAndOriginsOfItsMaker() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try write(a, 1...4)
        try exchange([a, b])
        try b.write("UPDATE trip SET name = 'x' WHERE name = 'a2'; DELETE FROM setting WHERE key = 'a1'")
        try b.write(
            "INSERT INTO setting VALUES ('a1', 'again'); UPDATE setting SET value = 'once more' WHERE key = 'a1'")
        try exchange([a, b])
        try b.makeSnapshot()
        try lab.prune()
        let c = try lab.node("c")
        let d = try lab.node("d")
        try c.consume()
        try d.consume()
        #expect(try c.knowledge() == d.knowledge())
        try expectSame([a, b, c, d])
        // A snapshot of loaded data is equal to the first one.
        try c.makeSnapshot()
        let e = try lab.node("e")
        try e.consume()
        #expect(
            try e.knowledge().filter { !$0.hasPrefix("origin") } == c.knowledge().filter { !$0.hasPrefix("origin") })
        func sides(_ node: TestNode) throws -> [String] {
            try node.store.trackedEntities().flatMap { entity in
                try node.records(of: entity.name).filter(\.clocks.isAlive).map { record -> String in
                    let inserted = String(describing: record.clocks.inserted)
                    return "\(record.identity) \(inserted) \(record.clocks.exceptions.isEmpty)"
                }.sorted()
            }
        }
        #expect(try sides(e) == sides(c))
    }

    @Test func aNodeThatWasAwayTooLongKeepsItsUnpublishedChanges() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try write(a, 1...3)
        try exchange([a, b])
        // While it is offline, the node makes one edit that wins by its time, one that loses, a new row, and a delete.
        try b.write("UPDATE trip SET budget = 1 WHERE name = 'a1'")
        try b.write("INSERT INTO trip(name) VALUES ('offline'); DELETE FROM setting WHERE key = 'a2'")
        try a.write("UPDATE trip SET budget = 2 WHERE name = 'a1'; INSERT INTO trip(name) VALUES ('meanwhile')")
        try a.write("DELETE FROM trip WHERE name = 'a3'")
        try b.write("UPDATE trip SET name = 'late' WHERE name = 'a2'")
        try a.publish()
        try a.consume()
        try a.makeSnapshot()
        try lab.prune()
        try b.restart()
        try exchange([a, b])
        try expectSame([a, b])
        try expectBoth(
            a, b,
            are: """
                note trip=->'a1' text='note 1'
                note trip=->'late' text='note 2'
                note trip=NULL text='note 3'
                setting key='a1' value=x'01'
                setting key='a3' value=x'03'
                stop trip=->'a1' place='place 1'
                stop trip=->'late' place='place 2'
                trip name='a1' budget=2.0
                trip name='late' budget=2.5
                trip name='meanwhile' budget=NULL
                trip name='offline' budget=NULL
                """)
        // The edit that lost unseen is in the journal of the node that made it.
        #expect(try b.conflicts() == ["attribute|1.0"])
        let late = try lab.node("late")
        try late.consume()
        try late.consume()
        try expectSame([a, b, late])
    }

    /// A topic is wiped, refilled by other nodes, and pruned exactly up to the offset where a node would read on. The
    /// message before it, which would reveal this, is gone.
    @Test(arguments: [false, true])
    func aTopicThatBeginsWhereReadingStoppedIsNotTakenForTheFormerOne(goesOn: Bool) throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try write(a, 1...2)
        try exchange([a, b, c])
        try a.write("INSERT INTO trip(name) VALUES ('seen by a alone')")
        try a.publish()
        try a.consume()
        let end = try lab.high(0)
        lab.bus.wipe()
        try write(c, 1...Int(end))
        try c.publish()
        for node in [b, c] {
            try node.restart()
            try node.consume()
        }
        try b.makeSnapshot()
        if goesOn {
            try write(c, 7...8)
            try c.publish()
        }
        lab.bus.truncate(partition: 0, upTo: end)
        try a.restart()
        try exchange([a, b, c])
        try expectSame([a, b, c])
        #expect(try c.rows("SELECT count(*) FROM trip WHERE name = 'seen by a alone'") == ["1"])
    }

    /// Wipes the topic. Then `b` writes two transactions, which `c` reads and `a` does not.
    ///
    /// - Returns: the offset at which the topic ends.
    private func refill(_ lab: SnapshotLab, by b: TestNode, readBy c: TestNode) throws -> Int64 {
        lab.bus.wipe()
        try write(b, 1...2)
        try b.publish()
        try c.restart()
        try c.consume()
        return try lab.high(0)
    }

    /// A topic is wiped, refilled by other nodes, and pruned: the messages that a node has not read lie before the
    /// topic's beginning, whatever offset the node has stored. Found by the simulator, seeds 4737 and 8928.
    ///
    /// - Parameters:
    ///   - others: the number of transactions on the pruned topic, besides two that another node wrote first.
    ///   - isLate: whether the snapshot is made after the node has read the topic.
    @Test(arguments: [2, 7], [false, true])
    func p124ASnapshotBringsWhatAnotherTopicDropped(others: Int, isLate: Bool) throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try write(a, 1...6)
        try exchange([a, c])
        let end = try refill(lab, by: b, readBy: c)
        if !isLate { try c.makeSnapshot() }
        try write(b, 3...others + 2)
        try b.publish()
        lab.bus.truncate(partition: 0, upTo: end)
        try a.restart()
        try a.consume()
        if isLate {
            #expect(try a.rows("SELECT count(*) FROM trip WHERE name IN ('b1', 'b2')") == ["0"])
            try c.consume()
            try c.makeSnapshot()
            try a.restart()
            try a.consume()
        }
        #expect(try a.rows("SELECT count(*) FROM trip WHERE name IN ('b1', 'b2')") == ["2"])
        try exchange([a, b, c])
        try expectSame([a, b, c])
        #expect(try WantedOffsets.load(a.engine.session).isEmpty)
    }

    /// The offsets of a snapshot from before the wipe are higher than those that the new topic dropped, and cover none
    /// of its messages.
    @Test func p124ASnapshotOfTheFormerTopicIsNotLoadedRepeatedly() throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try write(a, 1...6)
        try exchange([a, c])
        try c.makeSnapshot()
        let end = try refill(lab, by: b, readBy: c)
        try write(b, 3...9)
        try b.publish()
        lab.bus.truncate(partition: 0, upTo: end)
        try a.restart()
        try a.consume()
        #expect(try a.rows("SELECT count(*) FROM trip WHERE name LIKE 'b%'") == ["7"])
        try c.consume()
        try c.makeSnapshot()
        try a.restart()
        try a.consume()
        #expect(try a.rows("SELECT count(*) FROM trip WHERE name LIKE 'b%'") == ["9"])
        try exchange([a, b, c])
        try expectSame([a, b, c])
    }

    /// A snapshot that is loaded while the node reads may claim that the topic ends later than it does. Found by the
    /// fuzzer of hostile messages.
    @Test func p126TheConsumerNoticesThatASnapshotMovedItsOffsets() throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try write(c, 1...6)
        try exchange([c])
        let snapshot = try c.makeSnapshot()
        lab.bus.wipe()
        try write(b, 1...1)
        try b.publish()
        try a.consume()
        #expect(try #require(a.snapshots).load(snapshot.id, partitionCount: 1)?.isFinished == true)
        try write(b, 2...2)
        try b.publish()
        try a.consume()
        #expect(try a.rows("SELECT name FROM trip WHERE name LIKE 'b%' ORDER BY name") == ["b1", "b2"])
        try c.restart()
        try exchange([a, b, c])
        try expectSame([a, b, c])
    }

    /// No snapshot covers the offset, and nobody can tell whether the topic is the same: the node republishes the
    /// transactions that the newest snapshot lacks.
    @Test(arguments: [false, true])
    func transactionsThatTheNewestSnapshotLacksAreRepublishedOnceTheRestHasExpired(isWiped: Bool) throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try write(a, 1...1)
        try exchange([a])
        try a.makeSnapshot()
        try write(b, 1...2)
        try b.publish()
        try b.consume()
        let end = try lab.high(0)
        if isWiped {
            lab.bus.wipe()
            try write(a, 2...Int(end) + 1)
            try a.publish()
        }
        lab.bus.truncate(partition: 0, upTo: end)
        try b.restart()
        let late = try lab.node("late")
        try exchange([b, late])
        #expect(try late.rows("SELECT count(*) FROM trip WHERE name LIKE 'b%'") == ["2"])
        try a.restart()
        try exchange([a, b, late])
        try expectSame([a, b, late])
        // The node republishes them only once.
        let sent = try lab.high(0)
        for node in [a, b, late] { try node.restart() }
        try exchange([a, b, late])
        #expect(try lab.high(0) == sent)
    }

    @Test(arguments: [false, true])
    func anExpiredTopicThatWasReadToItsEndCausesNoLoadAndNoRepublishing(hasSnapshot: Bool) throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try write(a, 1...2)
        try write(b, 1...2)
        try exchange([a, b])
        if hasSnapshot { try b.makeSnapshot() }
        try lab.prune()
        let ends = [try lab.high(0), try lab.high(1)]
        for node in [a, b] { try node.restart() }
        try exchange([a, b])
        #expect([try lab.high(0), try lab.high(1)] == ends)
        for node in [a, b] {
            let loaded = try node.engine.session.read(SnapshotPlace.all)
            #expect(loaded.finished.isEmpty && loaded.begun == nil)
        }
        try write(a, 3...4)
        try exchange([a, b])
        try expectSame([a, b])
    }

    /// The node has not read back what it published, since a snapshot had it. So it knows of no partition with its own
    /// messages when those of others are gone.
    @Test func messagesOfOthersThatAreGoneRepublishNothingThatOnlyASnapshotHasConfirmed() throws {
        let lab = try SnapshotLab(partitions: 8)
        var nodes: [TestNode] = []
        for name in ["a", "b", "c", "d", "e", "f"] { nodes.append(try lab.node(name)) }
        let a = nodes[0]
        for node in nodes {
            try write(node, 1...3)
            try node.publish()
        }
        var partitions: [[UInt8]: Int32] = [:]
        for message in try messages(lab.bus) { partitions[message.key] = message.position.partition }
        func partition(_ node: TestNode) -> Int32? { partitions[Array(node.engine.node.description.utf8)] }
        let mine = try #require(partition(a))
        let other = try #require(nodes.first { partition($0) != mine })
        let theirs = try #require(partition(other))
        try other.consume()
        try other.makeSnapshot()
        lab.bus.truncate(partition: theirs, upTo: 1)
        try a.consume()
        #expect(try a.engine.confirmed() == 3)
        #expect(try OwnCount(a.engine.session).partitions() == [])

        // Now the topic drops what the node has not read, and no snapshot has it.
        try write(other, 4...5)
        try other.publish()
        lab.bus.truncate(partition: theirs, upTo: try lab.high(theirs) - 1)
        let end = try lab.high(mine)
        try a.restart()
        try a.consume()
        #expect(try !WantedOffsets.load(a.engine.session).isEmpty)
        try a.publish()
        #expect(try lab.high(mine) == end)
        #expect(try a.engine.confirmed() == 3)
    }

    /// In one partition, the node that has the transactions finds its own messages gone, too.
    @Test func transactionsThatTheMakerNeverReceivedAreRepublished() throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b) = try nodesOfWhichTheFirstMissedMessages(lab)
        try exchange([a, b])
        try expectSame([a, b])
        #expect(try a.rows("SELECT count(*) FROM trip WHERE name LIKE 'b%'") == ["3"])
    }

    /// Wherever their messages were, the node that has the transactions makes the next snapshot.
    @Test(arguments: [1, 3]) func transactionsThatTheMakerNeverReceivedComeWithTheNextSnapshot(partitions: Int) throws {
        let lab = try SnapshotLab(partitions: partitions)
        let (a, b) = try nodesOfWhichTheFirstMissedMessages(lab)
        try b.makeSnapshot()
        try a.restart()
        try exchange([a, b])
        try expectSame([a, b])
        #expect(try a.rows("SELECT count(*) FROM trip WHERE name LIKE 'b%'") == ["3"])
    }

    /// The topic drops the second node's writes before the first node, which makes a snapshot, has read them.
    private func nodesOfWhichTheFirstMissedMessages(_ lab: SnapshotLab) throws -> (TestNode, TestNode) {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try write(a, 1...1)
        try exchange([a, b])
        try write(b, 1...3)
        try b.publish()
        try b.consume()
        try lab.prune()
        try a.restart()
        try a.makeSnapshot()
        try write(a, 2...2)
        try a.publish()
        try lab.prune()
        try exchange([a, b])
        return (a, b)
    }

    /// The broker forgets an acknowledged message, and retention drops what came before it. The author's own snapshot
    /// has the transaction, but a node that has read the topic up to there loads no snapshot.
    @Test func p217WhatOnlyTheAuthorsOwnSnapshotHasIsRepublished() throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try b.write("INSERT INTO setting VALUES ('first', 1)")
        try b.write("INSERT INTO setting VALUES ('second', 2)")
        try b.makeSnapshot()
        try b.publish()
        try b.consume()
        let first = try #require(messages(lab.bus).first)
        lab.bus.wipe()
        let producer = try lab.bus.makeProducer { _ in }
        try producer.send(OutgoingMessage(key: first.key, headers: first.headers, payload: first.payload, tag: 0))
        producer.close()
        try a.consume()
        try expectState(a, is: "setting key='first' value=1")
        lab.bus.truncate(partition: 0, upTo: 1)
        try b.write("INSERT INTO setting VALUES ('third', 3)")
        try b.publish()
        for node in [a, b] { try node.restart() }
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                setting key='first' value=1
                setting key='second' value=2
                setting key='third' value=3
                """)
        try expectSame([a, b])
        // They are sent again only once.
        let sent = try lab.high(0)
        for node in [a, b] { try node.restart() }
        try exchange([a, b])
        #expect(try lab.high(0) == sent)
    }

    @Test func loadingASnapshotTwiceChangesNothing() throws {
        let a = try lab.node("a")
        try write(a, 1...5)
        try exchange([a])
        try a.write("DELETE FROM trip WHERE name = 'a1'; UPDATE trip SET budget = NULL WHERE name = 'a2'")
        let made = try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        try b.consume()
        try b.write("UPDATE trip SET name = 'own' WHERE name = 'a3'")
        try b.publish()
        let before = try b.knowledge()
        let changes = try b.logRowCount()
        try b.forgetSnapshots()
        #expect(try b.snapshots?.load(made.id, partitionCount: 2)?.isFinished == true)
        #expect(try b.knowledge() == before)
        #expect(try b.logRowCount() == changes)
        #expect(try b.conflicts() == [])
        #expect(try b.rows("SELECT count(*) FROM trip WHERE name = 'own'") == ["1"])
    }

    @Test func anOldSnapshotDoesNotReviveDeletedRows() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try write(a, 1...2)
        try exchange([a, b])
        // An old snapshot has rows that the node has since deleted, and the node has rows that the maker has since
        // deleted.
        try a.makeSnapshot()
        try b.write("DELETE FROM setting WHERE key = 'a1'; DELETE FROM trip WHERE name = 'a1'")
        try exchange([b])
        #expect(try b.snapshots?.load(partitionCount: 2)?.isFinished == true)
        try expectState(
            b,
            is: """
                note trip=->'a2' text='note 2'
                note trip=NULL text='note 1'
                setting key='a2' value=x'02'
                stop trip=->'a2' place='place 2'
                trip name='a2' budget=2.5
                """)
        try b.makeSnapshot()
        try lab.prune()
        try a.write("UPDATE setting SET value = 'touched' WHERE key = 'a2'")
        try exchange([a, b])
        try expectSame([a, b])
        try expectBoth(
            a, b,
            are: """
                note trip=->'a2' text='note 2'
                note trip=NULL text='note 1'
                setting key='a2' value='touched'
                stop trip=->'a2' place='place 2'
                trip name='a2' budget=2.5
                """)
    }

    @Test func valuesOfEveryKindSurviveASnapshot() throws {
        let lab = try SnapshotLab(
            """
            CREATE TABLE plain(id INTEGER PRIMARY KEY, v, t TEXT, i INTEGER, r REAL, b BLOB, n NUMERIC);
            CREATE TABLE named(v BLOB PRIMARY KEY NOT NULL, w) WITHOUT ROWID;
            """)
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        for (index, literal) in ValueTripTests.literals.enumerated() {
            try a.write(
                """
                INSERT INTO plain VALUES (\(index + 1), \(Array(repeating: literal, count: 6).joined(separator: ", ")));
                """
                    + "INSERT OR IGNORE INTO named VALUES (\(literal), \(literal));")
            try a.write("UPDATE plain SET v = \(literal) WHERE id = 1")
        }
        try exchange([a])
        try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        try b.consume()
        func dump(_ node: TestNode) throws -> [String] {
            let plain = ["v", "t", "i", "r", "b", "n"].map { "typeof(\($0)), quote(\($0)), hex(\($0))" }.joined(
                separator: ", ")
            return try node.rows("SELECT id, \(plain) FROM plain ORDER BY id")
                + node.rows("SELECT typeof(v), hex(v), quote(v), typeof(w), hex(w), quote(w) FROM named ORDER BY v")
        }
        #expect(try dump(a) == dump(b))
        #expect(try dump(b).count > ValueTripTests.literals.count)
        try expectSame([a, b])
    }

    @Test func aSnapshotIncludesPendingChangesAndPendingReferences() throws {
        let lab = try SnapshotLab(
            """
            CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
            CREATE TABLE seat(id INTEGER PRIMARY KEY, person INTEGER REFERENCES person(id), label TEXT);
            CREATE TABLE badge(id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person(id));
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO person(name) VALUES ('Ada')")
        try b.write("INSERT INTO person(name) VALUES ('Ada')")
        try b.write("INSERT INTO person(name) VALUES ('Bob')")
        try exchange([a, b])
        #expect(try a.parked() == ["unique"])
        // One node deletes the target while another node refers to it.
        try a.write("INSERT INTO seat(person, label) SELECT id, 's' FROM person WHERE name = 'Bob'")
        try a.write("INSERT INTO badge(person) SELECT id FROM person WHERE name = 'Bob'")
        try b.write("DELETE FROM person WHERE name = 'Bob'")
        try exchange([a, b])
        #expect(try b.parked().sorted() == ["missingTarget", "unique"])
        #expect(try b.pendingReferences().count == 1)
        try b.makeSnapshot()
        try lab.prune()
        let c = try lab.node("c")
        try c.consume()
        #expect(try c.knowledge().filter { $0.hasPrefix("shadow") } == b.knowledge().filter { $0.hasPrefix("shadow") })
        try expectAll(
            [b, c],
            are: """
                person name='Ada'
                seat person=NULL label='s'
                pending missingTarget badge person=->?
                pending missingTarget seat person=->?
                pending unique person name='Ada'
                """)
        try expectSame([a, b, c])
        // The loser comes back when the winner is deleted.
        try b.write("DELETE FROM person WHERE name = 'Ada'")
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                person name='Ada'
                seat person=NULL label='s'
                pending missingTarget badge person=->?
                pending missingTarget seat person=->?
                """)
        try expectSame([a, b, c])
    }

    @Test func concurrentWritesAreInTheSnapshotOrOnTheTopic() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try write(a, 1...9)
        try exchange([a, b])
        let path = a.path
        let failure = Mutex<String?>(nil)
        let ended = DispatchSemaphore(value: 0)
        Thread {
            do {
                let store = try Store(path: path)
                for number in 0..<200 {
                    try store.write { try $0.execute(sql: "INSERT INTO setting VALUES ('w\(number)', \(number))") }
                }
                try store.close()
            } catch {
                failure.withLock { $0 = "\(error)" }
            }
            ended.signal()
        }.start()
        try runUntilNothingMoves("writing beside the snapshots", limit: 100_000) {
            try a.makeSnapshot()
            return ended.wait(timeout: .now()) == .timedOut
        }
        #expect(failure.withLock { $0 } == nil)
        try lab.prune()
        try exchange([a])
        let c = try lab.node("c")
        try c.consume()
        try exchange([a, b, c])
        try expectSame([a, b, c])
        #expect(try c.rows("SELECT count(*) FROM setting") == ["209"])
    }

    @Test func aSnapshotStaysUntilTheNextButOneIsMade() throws {
        let a = try lab.node("a")
        try write(a, 1...9)
        try a.makeSnapshot()
        try a.write("DELETE FROM setting; DELETE FROM stop; DELETE FROM note")
        try a.makeSnapshot()
        let keys = Set(try messages(lab.snapshots).map { String(decoding: $0.key, as: UTF8.self) })
        #expect(Set(keys.map { $0.split(separator: "/")[1] }) == ["0", "1"])
        try a.loseTombstones()
        // The third snapshot reuses the keys of the first and needs fewer of them: the remaining keys get an empty
        // payload.
        try a.makeSnapshot()
        var newest: [String: IncomingMessage] = [:]
        for message in try messages(lab.snapshots) { newest[String(decoding: message.key, as: UTF8.self)] = message }
        try lab.rewrite { _ in
            newest.values.sorted {
                ($0.position.partition, $0.position.offset) < ($1.position.partition, $1.position.offset)
            }
        }
        #expect(newest.values.contains { $0.payload.isEmpty })
        let left = try #require(a.snapshots).list()
        #expect(left.map(\.state) == [.complete, .complete])
    }
}
