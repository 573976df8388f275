import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// The messages of an anti-entropy check, and how many there are.
@Suite struct AntiEntropyTopicTests {
    private func nodes(_ lab: AntiEntropyLab, _ names: [String], rows: Int) throws -> [CheckedNode] {
        let nodes = try names.map { try lab.node($0) }
        try nodes[0].node.write(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
            INSERT INTO setting SELECT 'key ' || i, i FROM n
            """)
        try exchange(nodes.map(\.node))
        return nodes
    }

    /// The whole state of a node with these rows, some of which have other values.
    private func state(rows: Int, _ others: [Int: String] = [:]) -> String {
        (1...rows).map { "setting key='key \($0)' value=\(others[$0] ?? "\($0)")" }.sorted().joined(separator: "\n")
    }

    @Test func oneDifferentRowOfTenThousandIsFoundWithFewMessages() throws {
        let lab = try AntiEntropyLab()
        let nodes = try nodes(lab, ["a", "b"], rows: 10_000)
        try nodes[1].damage("UPDATE setting SET value = 'bad' WHERE key = 'key 7777'")
        try check(nodes)
        #expect(try nodes[1].found() == ["otherValue repaired setting.value"])
        let messages = try MartletSyncTests.messages(lab.checks)
        // The messages are: all rows, sixteen parts, sixteen parts of one of those, the rows of one of these, and what
        // is newer. log16(n / 64) + 4 at most.
        #expect(messages.count <= 6)
        #expect(messages.reduce(0) { $0 + $1.payload.count } < 12_000)
        try expectAgreement(nodes)
    }

    @Test func manyDifferencesAreRepairedInSeveralChecks() throws {
        let lab = try AntiEntropyLab()
        let nodes = try nodes(lab, ["a", "b"], rows: 2000)
        try nodes[1].damage("DELETE FROM setting WHERE value % 3 > 0")
        try runUntilNothingMoves("repairing", limit: 20) {
            try check(nodes)
            return nodes[1].progress.repaired < 1334
        }
        #expect(nodes[1].progress.repaired == 1334)
        // The store keeps the newest thousand.
        #expect(try nodes[1].node.store.divergences().count == 1000)
        try expectAgreement(nodes)
    }

    /// Other nodes ignore a message that has more ranges.
    @Test func anAnswerAboutManyTablesHasNoMoreRangesThanAMessageMayHave() throws {
        let names = (1...6).map { "t\($0)" }
        let tables = names.map { "CREATE TABLE \($0)(key TEXT PRIMARY KEY NOT NULL, value)" }
        let lab = try AntiEntropyLab(tables.joined(separator: ";"))
        let node = try lab.node("a").node
        defer { withExtendedLifetime((lab, node)) {} }
        let engine = node.engine
        let answer = try engine.session.readStamped { db -> AntiEntropyReader.Answer in
            let reader = try AntiEntropyReader(db, engine: engine, topic: "t")
            var wire = try reader.beginning(NodeID(UUID()))
            for index in wire.digests.indices {
                wire.digests[index].ranges = (0..<256).map { place in
                    var range = WireCheckRange()
                    range.level = 2
                    range.prefix = UInt32(place) << 24
                    range.rows = 1000
                    range.digest = Data(repeating: 1, count: 16)
                    return range
                }
            }
            let message = AntiEntropyMessage(
                wire: wire, sender: NodeID(UUID()), check: NodeID(UUID()), vector: reader.vector, byteCount: 0)
            return try reader.answer(to: message, limit: 100_000) { _, _, _ in false }
        }
        #expect(answer.isCut)
        #expect(answer.message.digests.map(\.name).sorted() == names)
        #expect(answer.message.digests.reduce(0) { $0 + $1.ranges.count } <= InputBounds.maxCheckRanges)
    }

    @Test func onlyOneOfSeveralNodesWithTheSameAnswerReplies() throws {
        let lab = try AntiEntropyLab()
        let nodes = try nodes(lab, ["a", "b", "c", "d"], rows: 1000)
        try nodes[2].damage(
            "UPDATE setting SET value = 'bad' WHERE key = 'key 77'; DELETE FROM setting WHERE value = 5")
        try check([nodes[2], nodes[0], nodes[1], nodes[3]])
        #expect(try Set(nodes[2].found()) == ["otherValue repaired setting.value", "missingRow repaired setting"])
        for node in [nodes[0], nodes[1], nodes[3]] { #expect(try node.found().allSatisfy { $0.contains(" kept ") }) }
        #expect(try lab.messageCount <= 8)
        try expectAgreement(nodes)
    }

    @Test func threeNodesWithThreeDamagedRowsConverge() throws {
        let lab = try AntiEntropyLab()
        let nodes = try nodes(lab, ["a", "b", "c"], rows: 300)
        try nodes[2].node.write("UPDATE setting SET value = 'c' WHERE key = 'key 3'")
        try exchange(nodes.map(\.node))
        try nodes[0].damage("UPDATE setting SET value = 'bad' WHERE key = 'key 3'")
        try nodes[1].damage("DELETE FROM setting WHERE key = 'key 100'")
        try nodes[2].damage("UPDATE setting SET value = 'worse' WHERE key = 'key 200'")
        for node in nodes { try check([node] + nodes.filter { $0.antiEntropy !== node.antiEntropy }) }
        try expectAll(nodes.map(\.node), are: state(rows: 300, [3: "'c'"]))
        try expectAgreement(nodes)
    }

    /// The author of a value decides, even if it is asked last.
    @Test func aCheckWaitsForTheAuthorOfAValue() throws {
        let lab = try AntiEntropyLab()
        let nodes = try nodes(lab, ["a", "b", "c"], rows: 10)
        // The greater value would win without its author.
        try nodes[1].damage("UPDATE setting SET value = 'bad' WHERE key = 'key 3'")
        try #require(try nodes[1].antiEntropy.begin())
        try talk([nodes[1], nodes[2]])
        #expect(try nodes[2].found().contains("otherValue open setting.value"))
        try expectState(nodes[2].node, is: state(rows: 10))
        try talk(nodes)
        try expectAll(nodes.map(\.node), are: state(rows: 10))
        try expectAgreement(nodes)
    }

    @Test func withoutItsAuthorTheGreaterValueWinsOnAllNodes() throws {
        let lab = try AntiEntropyLab()
        let nodes = try nodes(lab, ["a", "b", "c"], rows: 10)
        try nodes[1].damage("UPDATE setting SET value = 'bad' WHERE key = 'key 3'")
        try nodes[2].damage("UPDATE setting SET value = 'worse' WHERE key = 'key 3'")
        let late = Array(nodes[1...])
        // The author's last message was long ago.
        for node in late { try node.damage("UPDATE _martlet_meta SET at = 1 WHERE key GLOB 'origin/*'") }
        try check(late)
        try expectAll(late.map(\.node), are: state(rows: 10, [3: "'worse'"]))
        #expect(try nodes[1].node.conflicts() == ["attribute|bad"])
        try expectAgreement(late)
    }

    @Test func damagedAndNewerMessagesAreIgnored() throws {
        let lab = try AntiEntropyLab()
        let nodes = try nodes(lab, ["a", "b"], rows: 10)
        try nodes[1].damage("UPDATE setting SET value = 'bad' WHERE key = 'key 3'")
        try #require(try nodes[0].antiEntropy.begin())
        let sound = try #require(try MartletSyncTests.messages(lab.checks).first)
        lab.checks.wipe()
        func send(_ change: (inout IncomingMessage) throws -> Void) throws {
            var message = sound
            try change(&message)
            let producer = try lab.checks.makeProducer { _ in }
            try producer.send(
                OutgoingMessage(key: message.key, headers: message.headers, payload: message.payload, tag: 0))
            producer.close()
            try talk([nodes[1]])
        }
        func sendWire(_ change: (inout WireCheckMessage) -> Void) throws {
            try send { message in
                var wire = try AntiEntropyFormat.decode(message).wire
                change(&wire)
                message.payload = try AntiEntropyFormat.encode(wire)
                message.headers.removeAll { $0.name == WireHeader.checksum }
            }
        }
        try send { $0.payload[10] ^= 1 }
        try send { $0.payload.removeLast(5) }
        try send {
            $0.payload = []
            $0.headers = []
        }
        try sendWire { $0.format = 2 }
        try sendWire { $0.header.maker = Data([1]) }
        try sendWire { wire in
            wire.contents.rows = [WireSnapshotRow()]
            wire.contents.rows[0].entity = 77
        }
        try sendWire { wire in
            wire.digests[0].ranges[0].level = 99
            wire.digests[0].shape = Data()
            wire.digests = [wire.digests[0]]
        }
        try sendWire { wire in
            wire.header.hlc = .max
            wire.contents = WireSnapshotContents()
        }
        let b = nodes[1]
        #expect(b.progress.ignored == 7 && b.progress.found == 0 && b.progress.sent == 0)
        try send { _ in }
        try talk(nodes)
        #expect(try b.found() == ["otherValue repaired setting.value"])
    }

    @Test func aCheckBeginsByItselfWhenItIsDue() throws {
        let lab = try AntiEntropyLab()
        let node = try lab.lab.node("a")
        var configuration = AntiEntropyConfiguration()
        configuration.interval = .milliseconds(1)
        let antiEntropy = AntiEntropy(engine: node.engine, bus: lab.checks, topic: "t", configuration: configuration)
        let deadline = ContinuousClock.now + .seconds(60)
        while antiEntropy.currentProgress.begun == 0, ContinuousClock.now < deadline {
            antiEntropy.step(timeout: .milliseconds(1))
        }
        #expect(antiEntropy.currentProgress.begun > 0)
    }

    @Test func messagesInPartitionsThatWereAddedAreRead() throws {
        let lab = try AntiEntropyLab()
        let clock = TestClock()
        let (a, b) = (try lab.node("a", clock: clock), try lab.node("b", clock: clock))
        try a.node.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a.node, b.node])
        try b.damage("DELETE FROM setting")
        // The messages of hardly any node still go to the first partition.
        lab.checks.addPartitions(999)
        clock.pass(.seconds(300))
        try talk([a, b])
        try check([a, b])
        #expect(try b.found() == ["missingRow repaired setting"])
    }

    @Test func p188AReportThatCouldNotBeSentIsSentAgain() throws {
        let lab = try AntiEntropyLab()
        defer { withExtendedLifetime(lab) {} }
        let node = try lab.lab.node("a")
        let bus = FaultyBus(lab.checks, refusals: 1)
        let antiEntropy = AntiEntropy(engine: node.engine, bus: bus, topic: "t")
        // A transaction was refused for its age, and its author should hear of that.
        node.engine.late.note()
        #expect(!antiEntropy.step(timeout: .zero))
        #expect(antiEntropy.step(timeout: .zero))
        #expect(try lab.messageCount == 1)
    }

    /// One row fits into no message, each of the others into one of its own.
    @Test func aRowThatFitsIntoNoMessageDoesNotKeepChecksGoing() throws {
        let lab = try AntiEntropyLab()
        let clock = TestClock()
        let a = try lab.checked(lab.lab.node("a", clock: clock) { $0.maxMessageBytes = 2000 })
        let b = try lab.node("b")
        try a.node.write(
            "WITH k(key) AS (VALUES ('x'), ('y'), ('z')) INSERT INTO setting SELECT key, zeroblob(1000) FROM k")
        try a.node.write("INSERT INTO setting VALUES ('large', zeroblob(4000))")
        try exchange([a.node, b.node])
        try b.damage("DELETE FROM setting")
        try check([b, a])
        // Checks are continued until all rows are back that a message can have.
        for _ in 0..<4 {
            clock.pass(AntiEntropySchedule.continuation * 2)
            try talk([a, b])
        }
        #expect(try b.node.keys() == ["x", "y", "z"])
        #expect(try b.found() == Array(repeating: "missingRow repaired setting", count: 3))
        let begun = a.progress.begun
        clock.pass(AntiEntropySchedule.continuation * 2)
        try talk([a, b])
        #expect(a.progress.begun == begun)
    }
}
