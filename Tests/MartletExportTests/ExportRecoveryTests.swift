import Foundation
import MartletExport
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The topics have the rows of the store, whatever happens to the exporter.
@Suite(.timeLimit(.minutes(5))) struct ExportRecoveryTests {
    private static let tables = ["trip", "stop", "setting", "pair"]

    private func begin(_ node: TestNode) throws {
        try node.write(
            """
            INSERT INTO trip VALUES (1, 'Rome', 10), (2, 'Oslo', NULL);
            INSERT INTO stop VALUES (1, 1, 'Forum'), (2, 2, 'Opera');
            INSERT INTO setting VALUES ('a', 9007199254740993), ('b', 'text'), ('c', NULL);
            """)
    }

    private func go(_ node: TestNode) throws {
        try node.write("UPDATE trip SET name = 'Roma', budget = 1e300; INSERT INTO pair VALUES ('p', 1, x'00ff')")
        try node.write("UPDATE pair SET b = 2; UPDATE setting SET key = 'd' WHERE key = 'c'")
        try node.write("DELETE FROM trip WHERE id = 2; INSERT INTO trip VALUES (2, 'Bern', 1)")
        try node.write("DELETE FROM setting WHERE key = 'b'; INSERT INTO setting VALUES ('b', x'01')")
        try node.write("UPDATE stop SET trip = 2; DELETE FROM setting WHERE key = 'a'")
    }

    /// Like a process that is killed, it ends without giving anything back.
    private func runUntilKilled(_ lab: ExportLab, _ node: TestNode) throws {
        let exporter = try lab.exporter(node) { $0.batchChanges = 3 }
        while try exporter.step() != .caughtUp {}
    }

    /// librdkafka says of such a record that its queue is full, however often it is sent.
    @Test func p241ARecordThatExceedsTheQueueIsReported() throws {
        let lab = try ExportLab()
        let node = try lab.node("a")
        try node.write("INSERT INTO setting VALUES ('a', 1), ('b', hex(zeroblob(1000))), ('c', 2)")
        lab.topics.limitQueue(bytes: 1500)
        let error = #expect(throws: BusError.self) { try lab.export(node) }
        #expect(error?.code == .messageTooLarge)
        #expect(error?.message.contains("x.setting") ?? false)
        #expect(error?.hint.contains("kafka.producerQueueBytes") ?? false)
        lab.topics.limitQueue(bytes: 1 << 20)
        try lab.export(node)
        try RebuiltTables(lab, Self.tables).expectEqual(to: node)
    }

    @Test func p242ATopicOfTheLeaseThatWasDeletedIsCreatedAgain() throws {
        let lab = try ExportLab()
        let node = try lab.node("a")
        try begin(node)
        let exporter = try lab.exporter(node)
        while try exporter.step() != .caughtUp {}
        lab.topics.delete("x.export")
        try go(node)
        let error = #expect(throws: BusError.self) { while try exporter.step() != .caughtUp {} }
        #expect(error?.code == .unknownTopic)
        while try exporter.step() != .caughtUp {}
        try RebuiltTables(lab, Self.tables).expectEqual(to: node)
    }

    @Test(arguments: MemoryTopics.Failure.allCases)
    func theTopicsHaveAllRowsAfterAKillAtAnyPoint(failure: MemoryTopics.Failure) throws {
        var point = 0
        var isOver = false
        while !isOver {
            let lab = try ExportLab()
            let node = try lab.node("a")
            try begin(node)
            lab.topics.fail(after: point, failure)
            let before = lab.topics.sentCount
            do {
                try runUntilKilled(lab, node)
                try go(node)
                try runUntilKilled(lab, node)
                isOver = true
            } catch let error as BusError {
                #expect(error.code == .timedOut)
                #expect(lab.topics.sentCount > before)
                // The process is gone, and the store was written meanwhile.
                try node.restart()
                if try node.rows("SELECT count(*) FROM pair") == ["0"] { try go(node) }
                try lab.export(node) { $0.batchChanges = 5 }
            }
            try RebuiltTables(lab, Self.tables).expectEqual(to: node, "after \(point)")
            point += 1
        }
        #expect(point > 30)
    }

    @Test func anotherNodeTakesOverAndTheTopicsHaveItsRows() throws {
        let lab = try ExportLab()
        let clock = TestClock()
        let (a, b) = (try lab.node("a"), try lab.node("b", clock: clock))
        try begin(a)
        try exchange([a, b])
        let first = try lab.exporter(a)
        while try first.step() != .caughtUp {}
        // Node b has a change that a never had, and a one that b gets later.
        try b.write("UPDATE setting SET value = 'of b' WHERE key = 'a'; DELETE FROM setting WHERE key = 'b'")
        try a.write("UPDATE setting SET value = 'of a' WHERE key = 'a'; INSERT INTO setting VALUES ('new', 1)")
        while try first.step() != .caughtUp {}
        let second = try lab.exporter(b)
        #expect(try second.step() == .notLeading)
        #expect(second.otherExporter == "a")
        clock.pass(.seconds(14))
        #expect(try second.step() == .notLeading)
        clock.pass(.seconds(2))
        // It claims the lease, and waits until the other one can't believe any more that it holds it.
        #expect(try second.step() == .notLeading)
        clock.pass(.seconds(16))
        while try second.step() != .caughtUp {}
        try RebuiltTables(lab, Self.tables).expectEqual(to: b)
        try exchange([a, b])
        while try second.step() != .caughtUp {}
        try RebuiltTables(lab, Self.tables).expectEqual(to: b)
        // The first one comes back, and sees that it is not its turn.
        #expect(try first.step() == .notLeading)
        #expect(try a.store.cursors().map(\.name).contains("martlet.export.x") == false)
    }

    @Test func changesThatNobodyHasExportedAreRecordsAfterATakeover() throws {
        let lab = try ExportLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try begin(a)
        try exchange([a, b])
        try lab.export(a)
        try a.write("UPDATE setting SET value = 'exported' WHERE key = 'a'")
        try lab.export(a)
        try a.write("UPDATE setting SET value = 'first' WHERE key = 'a'")
        try a.write("UPDATE setting SET value = 'second' WHERE key = 'a'")
        try exchange([a, b])
        let before = try lab.messages("x.setting").count
        try lab.export(b)
        let found = try lab.messages("x.setting").dropFirst(before).compactMap { message -> String? in
            let value = try JSONSerialization.jsonObject(with: Data(message.payload)) as? [String: Any] ?? [:]
            guard message.key == Array(#"{"key":"a"}"#.utf8) else { return nil }
            return "\(value["op"] ?? "") \((value["after"] as? [String: Any])?["value"] ?? "")"
        }
        #expect(found == ["r second", "u first", "u second"])
        try RebuiltTables(lab, Self.tables).expectEqual(to: b)
    }

    @Test func theNextRunOfANodeNeedNotWait() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try begin(a)
        let first = try lab.exporter(a)
        while try first.step() != .caughtUp {}
        try a.restart()
        try a.write("INSERT INTO setting VALUES ('new', 1)")
        #expect(try lab.export(a) == 1)
    }

    @Test func aRunThatEndsLetsAnotherNodeExportAtOnce() throws {
        let lab = try ExportLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try begin(a)
        try exchange([a, b])
        try lab.export(a)
        #expect(try lab.export(b) > 0)
        try RebuiltTables(lab, Self.tables).expectEqual(to: b)
    }

    @Test func aRunWhoseRecordsMayStillBeOnTheirWayKeepsItsPlaceForAWhile() throws {
        let lab = try ExportLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try begin(a)
        try exchange([a, b])
        lab.topics.fail(after: 2, .unacknowledged)
        let error = #expect(throws: BusError.self) { try lab.export(a) }
        #expect(error?.message.hasPrefix("topic x.") ?? false)
        let second = try lab.exporter(b)
        #expect(try second.step() == .notLeading)
        #expect(second.otherExporter == "a")
    }

    @Test func aRecordWhosePlaceTheBrokerDoesNotTellIsNoneOfSomebodyElse() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try begin(a)
        let exporter = try lab.exporter(a)
        while try exporter.step() != .caughtUp {}
        for hidesOffsets in [false, true, false, false] {
            lab.topics.hidesOffsets(hidesOffsets)
            let before = try lab.messages("x.setting").count
            try a.write("UPDATE setting SET value = 'new' || random() WHERE key = 'b'")
            while try exporter.step() != .caughtUp {}
            #expect(try lab.messages("x.setting").count == before + 1)
        }
    }

    @Test func rowsThatWentUnseenAreRemovedFromTheTopics() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try begin(a)
        try lab.export(a)
        // The history of these is gone before they are exported.
        try a.store.removeCursor("martlet.export.x")
        try a.write("DELETE FROM setting WHERE key = 'a'; INSERT INTO setting VALUES ('new', 1)")
        try a.publish()
        try a.store.deleteHistory(before: .distantFuture)
        try lab.export(a)
        try RebuiltTables(lab, Self.tables).expectEqual(to: a)
        let last = try lab.records("x.setting", a).filter { $0.hasPrefix(#"{"key":"a"}"#) }.suffix(2)
        #expect(last.map { $0.hasSuffix("= null") } == [false, true])
        #expect(last.first?.contains(#""before":{"key":"a"},"after":null"#) ?? false)
    }

    @Test func historyThatIsDeletedUnderARunningExporterIsNoticed() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try begin(a)
        let exporter = try lab.exporter(a)
        while try exporter.step() != .caughtUp {}
        try a.store.removeCursor("martlet.export.x")
        try a.write("DELETE FROM setting WHERE key = 'a'")
        try a.publish()
        try a.store.deleteHistory(before: .distantFuture)
        while try exporter.step() != .caughtUp {}
        try RebuiltTables(lab, Self.tables).expectEqual(to: a)
    }

    @Test func historyThatIsStillToBeExportedIsKept() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try begin(a)
        try lab.export(a)
        try go(a)
        try a.publish()
        let report = try a.store.deleteHistory(before: .distantFuture)
        #expect(report.heldBackBy == "martlet.export.x")
        try lab.export(a)
        try RebuiltTables(lab, Self.tables).expectEqual(to: a)
    }

    @Test func rowsThatAwaitOthersComeOnceTheyAreThere() throws {
        let lab = try ExportLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try lab.export(b)
        try a.write("INSERT INTO trip VALUES (1, 'Rome', 10)")
        try a.write("INSERT INTO stop VALUES (1, 1, 'Forum')")
        try a.publish()
        let messages = try lab.messages("t")
        _ = try b.engine.apply([messages[1]], topic: "direct")
        try lab.export(b)
        #expect(try lab.messages("x.stop").isEmpty)
        try b.consume()
        try lab.export(b)
        try RebuiltTables(lab, Self.tables).expectEqual(to: b)
    }

    @Test func aTopicThatWasEmptiedIsExportedAgain() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try begin(a)
        try lab.export(a)
        InMemoryBus(topic: "x.setting", beside: lab.bus).wipe()
        #expect(try lab.export(a) == 3)
        try RebuiltTables(lab, Self.tables).expectEqual(to: a)
        // While the exporter runs, it sees that when it sends the next record.
        let exporter = try lab.exporter(a)
        while try exporter.step() != .caughtUp {}
        InMemoryBus(topic: "x.trip", beside: lab.bus).wipe()
        try a.write("UPDATE trip SET budget = 1 WHERE id = 1")
        while try exporter.step() != .caughtUp {}
        try a.write("UPDATE trip SET budget = 2 WHERE id = 1")
        while try exporter.step() != .caughtUp {}
        try RebuiltTables(lab, Self.tables).expectEqual(to: a)
    }

    /// A process that was stopped runs again, and delivers what it had on its way.
    @Test func recordsOfSomebodyElseAreReplaced() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try begin(a)
        let exporter = try lab.exporter(a)
        while try exporter.step() != .caughtUp {}
        let other = try InMemoryBus(topic: "x.setting", beside: lab.bus).makeProducer { _ in }
        let old = try #require(try lab.messages("x.setting").first)
        for key in [old.key, Array(#"{"key":"never"}"#.utf8)] {
            try other.send(
                OutgoingMessage(
                    key: key, headers: [], payload: Array(#"{"op":"u","after":{"key":"old","value":0}}"#.utf8), tag: 0))
        }
        other.close()
        try a.write("INSERT INTO setting VALUES ('next', 1)")
        while try exporter.step() != .caughtUp {}
        while try exporter.step() != .caughtUp {}
        try RebuiltTables(lab, Self.tables).expectEqual(to: a)
    }
}
