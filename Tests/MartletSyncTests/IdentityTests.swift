import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Stores that use another store's node ID: copies, and stores restored from a backup.
@Suite struct IdentityTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    /// A second store with the node's current contents: a copy, or one that will be restored from a backup.
    private func copy(_ node: TestNode, _ name: String) throws -> TestNode {
        let file = lab.directory.path("\(name)-backup.sqlite")
        try node.backUp(to: file)
        return try TestNode(name, bus: lab.bus, directory: lab.directory, schema: "", copyOf: file)
    }

    private func expectCopied(_ node: TestNode) throws {
        let before = try [node.stampedThrough(), node.status().lastSequence]
        let error = try #require(throws: StoreError.self) { try node.engine.checkIdentity(on: lab.bus) }
        #expect(error.code == .copied)
        #expect(error.hint.contains("martlet fork \(node.path)"))
        #expect(try [node.stampedThrough(), node.status().lastSequence] == before)
    }

    @discardableResult
    private func fork(_ node: TestNode) throws -> ForkReport {
        let report = try node.engine.fork()
        try node.restart()
        return report
    }

    private func trips(_ node: TestNode) throws -> [String] {
        try node.rows("SELECT name, budget FROM trip ORDER BY name")
    }

    private func expectEqual(_ nodes: [TestNode]) throws {
        for node in nodes {
            #expect(try StoreDigest.compute(node.store) == StoreDigest.compute(nodes[0].store), "\(node.name)")
            #expect(try node.gaps() == [])
            #expect(try node.store.conflicts() == [])
            #expect(try node.chunks() == [])
        }
    }

    /// The sqlite3 shell's `.restore` replaces the file while the node syncs. What the engine knows in memory must not
    /// be written into the older file.
    @Test(arguments: [true, false])
    func p115aStoreThatABackupReplacesWhileItSyncsIsNotWrittenTo(publishes: Bool) throws {
        let lab = try Lab("CREATE TABLE item(id TEXT PRIMARY KEY NOT NULL)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES ('one')")
        try exchange([a, b])
        let backup = lab.directory.path("backup.sqlite")
        try ForeignProgram.shell.run(".backup \(backup)", on: a.path)
        try a.write("INSERT INTO item VALUES ('two')")
        try b.write("INSERT INTO item VALUES ('three')")
        try exchange([a, b])
        #expect(try a.rows("SELECT count(*) FROM item") == ["3"])
        try ForeignProgram.shell.run(".restore \(backup)", on: a.path)
        let state = "SELECT * FROM _martlet_meta ORDER BY 1"
        let before = try a.rows(state)
        if publishes {
            try a.foreignWrite("INSERT INTO item VALUES ('four')")
            #expect(!a.publisher.step())
        } else {
            try b.write("INSERT INTO item VALUES ('five')")
            try b.publish()
        }
        #expect(a.consumer.step(timeout: .milliseconds(1)) == nil)
        #expect(a.consumer.lastFailure?.code == .copied)
        #expect(try a.rows(state) == before)
        // The agent does the same if it is configured to.
        try a.restart()
        try fork(a)
        try exchange([a, b])
        for node in [a, b] {
            #expect(
                try node.rows("SELECT id FROM item ORDER BY id")
                    == (publishes ? ["four", "one", "three", "two"] : ["five", "one", "three", "two"]), "\(node.name)")
        }
    }

    @Test func p31ACopyIsDetectedByTheOthersMessagesAndKeepsItsRowsUnderANewID() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO trip(name) VALUES ('before')")
        try exchange([a, b])
        let c = try copy(a, "c")
        // In each store, this is row 2 and change 2.
        try a.write("INSERT INTO trip(name) VALUES ('from a')")
        try c.write("INSERT INTO trip(name) VALUES ('from c')")
        try a.publish()
        try expectCopied(c)
        let report = try fork(c)
        #expect(report.former == a.engine.node)
        #expect(report.node == c.engine.node && c.engine.node != a.engine.node)
        try c.engine.checkIdentity(on: lab.bus)
        try exchange([a, b, c])
        #expect(try trips(b) == ["before|NULL", "from a|NULL", "from c|NULL"])
        try expectEqual([a, b, c])
    }

    @Test func p31ARestoredStoreGetsBackWhatItHadPublishedSince() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO trip(name, budget) VALUES ('kept', 1), ('changed', 1), ('deleted', 1)")
        try exchange([a, b])
        let restored = try copy(a, "restored")
        try a.write("INSERT INTO trip(name) VALUES ('new')")
        try a.write("UPDATE trip SET budget = 2 WHERE name = 'changed'")
        try a.write("DELETE FROM trip WHERE name = 'deleted'")
        try a.publish()
        try b.write("INSERT INTO trip(name) VALUES ('from b')")
        try exchange([b])
        try restored.write("INSERT INTO trip(name) VALUES ('after the restore')")
        try expectCopied(restored)
        try fork(restored)
        try exchange([b, restored])
        #expect(
            try trips(restored) == ["after the restore|NULL", "changed|2.0", "from b|NULL", "kept|1.0", "new|NULL"])
        try expectEqual([b, restored])
        // In its history, these are remote changes.
        let former = try restored.store.fetchHistory(HistoryQuery(author: .equal(TransactionAuthor.sync)))
        #expect(former.contains { $0.origin != nil })
    }

    @Test func p31ARestoredStoreIsDetectedByASnapshotOnceTheTopicHasDroppedItsMessages() throws {
        let lab = try SnapshotLab()
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO trip(name) VALUES ('kept')")
        try exchange([a, b])
        let file = lab.directory.path("backup.sqlite")
        try a.backUp(to: file)
        try a.write("INSERT INTO trip(name) VALUES ('new')")
        try exchange([a, b])
        try b.makeSnapshot()
        try lab.prune()
        let restored = try TestNode(
            "restored", bus: lab.bus, snapshots: lab.snapshots, directory: lab.directory, schema: "", copyOf: file)
        try restored.write("INSERT INTO trip(name) VALUES ('after the restore')")
        try restored.engine.checkIdentity(on: lab.bus)
        let error = try #require(throws: StoreError.self) {
            try restored.engine.checkIdentity(on: lab.bus, snapshots: restored.snapshots)
        }
        #expect(error.code == .copied)
        try fork(restored)
        try restored.engine.checkIdentity(on: lab.bus, snapshots: restored.snapshots)
        try exchange([b, restored])
        #expect(try trips(b) == ["after the restore|NULL", "kept|NULL", "new|NULL"])
        try expectSame([b, restored])
    }

    @Test(arguments: [false, true]) func p31UnpublishedChangesArePublishedUnderTheNewIDAndCountOnce(
        originalPublishesToo: Bool
    ) throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO trip(name) VALUES ('before')")
        try exchange([a, b])
        for number in 1...3 { try a.write("INSERT INTO trip(name, budget) VALUES ('\(number)', \(number))") }
        try a.write("UPDATE trip SET budget = 9 WHERE name = '2'")
        try a.write("DELETE FROM trip WHERE name = '3'")
        // The changes have sequences and timestamps, but are unpublished.
        _ = try a.engine.apply([], topic: "t")
        let c = try copy(a, "c")
        #expect(try fork(c).republished == 5)
        var nodes = [b, c]
        if originalPublishesToo {
            try a.publish()
            nodes.append(a)
        }
        try exchange(nodes)
        #expect(try trips(b) == ["1|1.0", "2|9.0", "before|NULL"])
        try expectEqual(nodes)
        // Each change counts once: duplicates change nothing.
        #expect(try b.store.fetchHistory().count == 6)
        // Again, with a later write of the copy.
        try c.write("INSERT INTO trip(name) VALUES ('later')")
        try exchange(nodes)
        try expectEqual(nodes)
    }

    @Test func p31TwoRunningStoresWithOneNodeIDDetectEachOther() throws {
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a])
        let c = try copy(a, "c")
        try a.write("INSERT INTO setting VALUES ('a', 1)")
        try c.write("INSERT INTO setting VALUES ('c', 1)")
        try a.publish()
        try c.publish()
        // Each finds a transaction 2 that is not its own.
        for node in [a, c] {
            try runUntilNothingMoves("reading") {
                let report = node.consumer.step(timeout: .milliseconds(1))
                return report != nil && report != ApplyReport()
            }
            #expect(node.consumer.lastFailure?.code == .copied)
            #expect(node.consumer.stopSignal.isStopped)
            #expect(try node.engine.offsets(topic: "t").map(\.offset) == [1])
        }
        let b = try lab.node("b")
        try fork(c)
        try a.restart()
        try exchange([c, b])
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["a", "c", "k"])
    }

    /// A stopped check must not look like a result: the caller must not continue as if the identity were right.
    @Test func p65AStoppedIdentityCheckHasNoResult() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try a.publish()
        #expect(throws: CancellationError.self) { try b.engine.checkIdentity(on: lab.bus) { true } }
        var isStopped = false
        try b.engine.checkIdentity(on: lab.bus) { isStopped }
        isStopped = true
        // The topic has no messages left to look at.
        try b.consume()
        try b.engine.checkIdentity(on: lab.bus) { isStopped }
    }

    /// A copy of a node's store, whose first message that is not its own comes after many of others.
    private func copyWithALateProblem() throws -> (a: TestNode, b: TestNode, copy: TestNode) {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a])
        let c = try copy(a, "c")
        for number in 1...30 { try b.write("INSERT INTO setting VALUES ('\(number)', 0)") }
        try b.publish()
        try a.write("INSERT INTO setting VALUES ('l', 0)")
        try a.publish()
        return (a, b, c)
    }

    /// - Returns: how many attempts it takes to find out that the store is a copy.
    private func attempts(_ node: TestNode, _ bus: BrittleBus) throws -> Int {
        for attempt in 1...50 {
            do {
                try node.engine.checkIdentity(on: bus)
                throw TestFailure("the copy passed")
            } catch let error as StoreError where error.code == .copied {
                return attempt
            } catch is BusError {}
        }
        throw TestFailure("the comparison never ends")
    }

    @Test func p199AnIdentityCheckContinuesAfterALostConnection() throws {
        let (_, _, copy) = try copyWithALateProblem()
        let bus = BrittleBus(lab.bus)
        bus.pollsOfEach.withLock { $0 = 3 }
        #expect(try attempts(copy, bus) == 6)
    }

    @Test func p199AnIdentityCheckBeginsAgainWhenTheTopicWasReplaced() throws {
        let (a, b, copy) = try copyWithALateProblem()
        let bus = BrittleBus(lab.bus)
        bus.pollsOfEach.withLock { $0 = 3 }
        #expect(throws: BusError.self) { try copy.engine.checkIdentity(on: bus) }
        // Now the message that is not the copy's own comes first.
        lab.bus.wipe()
        for node in [a, b] {
            node.publisher.rewind(to: 0)
            try node.publish()
        }
        #expect(throws: BusError.self) { try copy.engine.checkIdentity(on: bus) }
        #expect(try attempts(copy, bus) == 1)
    }

    @Test func aNodeThatHasNotReadItsOwnMessagesBackPassesTheIdentityCheck() throws {
        let a = try lab.node("a")
        for number in 1...5 {
            try a.write("INSERT INTO setting VALUES ('\(number)', 0)")
            try a.publish()
        }
        // The messages are acknowledged, but not read back.
        try a.engine.checkIdentity(on: lab.bus)
        try exchange([a])
        try a.restart()
        try a.engine.checkIdentity(on: lab.bus)
        try lab.rewrite { Array($0.prefix(2)) }
        try a.engine.checkIdentity(on: lab.bus)
        lab.bus.wipe(partitionCount: 3)
        try a.engine.checkIdentity(on: lab.bus)
        // The node keeps its ID, and republishes what the topic lost.
        let name = a.engine.node
        let b = try lab.node("b")
        try exchange([a, b])
        #expect(a.engine.node == name)
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["1", "2", "3", "4", "5"])
        #expect(try lab.messages().count == 5)
        try expectEqual([a, b])
    }

    @Test func aForkRereadsChunksThatItHadOnlyInPart() throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('before', 0)")
        try exchange([a, b])
        try a.write("INSERT INTO setting VALUES ('large', '\(String(repeating: "x", count: 5000))')")
        try a.publish()
        let chunks = try lab.messages().count - 1
        #expect(chunks > 2)
        let whole = try lab.messages()
        try lab.rewrite { Array($0.dropLast(2)) }
        try a.restart()
        try a.consume()
        let c = try copy(a, "c")
        #expect(try !c.chunks().isEmpty)
        try fork(c)
        #expect(try c.chunks() == [])
        try lab.rewrite { _ in whole }
        try exchange([b, c])
        try expectEqual([b, c])
        #expect(try c.rows("SELECT length(value) FROM setting WHERE key = 'large'") == ["5000"])
    }

    @Test func p33TokensFromBeforeAForkExpire() throws {
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        let token = try #require(try a.store.fetchHistory().last?.token)
        try fork(a)
        let store = try Store(path: a.path)
        let error = #expect(throws: StoreError.self) { try store.fetchHistory(HistoryQuery(after: token)) }
        #expect(error?.code == .historyTokenExpired)
        #expect(try store.fetchHistory().count == 1)
    }

    /// The row's ID changes on one node before the other node's change arrives.
    @Test func p148TheLeastIntegerIsNotEqualToARealNumber() throws {
        var request = AttachRequest()
        request.identities = ["item": ["code"]]
        let lab = try Lab(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, code INT NOT NULL UNIQUE, note TEXT)", request: request)
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try a.write("INSERT INTO item(code) VALUES (-9223372036854775808)")
        try exchange([a, b])
        try a.write("UPDATE item SET code = -9223372036854775808.0, note = 'real'")
        try b.write("UPDATE item SET note = 'integer'")
        try exchange([b])
        try exchange([a, b, c])
        try exchange([a, b, c])
        try expectAll([a, b, c], are: "item code=-9.223372036854776e+18 note='real'")
        let identities = try [a, b].map { try Array($0.store.identities(of: "item").values) }
        #expect(identities[0] == identities[1])
    }
}
