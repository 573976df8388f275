import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Comparisons of stores as files.
@Suite struct StoreComparisonTests {
    let lab: AntiEntropyLab
    let a: CheckedNode
    let b: CheckedNode

    init() throws {
        lab = try AntiEntropyLab()
        a = try lab.node("a")
        b = try lab.node("b")
        for (node, name) in [(a, "a"), (b, "b")] {
            for number in 1...5 {
                try node.node.write(
                    """
                    INSERT INTO trip(name, budget) VALUES ('\(name)\(number)', \(number));
                    INSERT INTO setting VALUES ('\(name)\(number)', \(number))
                    """
                )
            }
        }
        try exchange([a.node, b.node])
    }

    /// The whole state of the nodes, of whose settings some have other values.
    private func state(_ others: [String: String] = [:]) -> String {
        let rows: [(key: String, number: Int)] = ["a", "b"].flatMap { name in (1...5).map { ("\(name)\($0)", $0) } }
        let settings = rows.map { "setting key='\($0.key)' value=\(others[$0.key] ?? "\($0.number)")" }
        return (settings + rows.map { "trip name='\($0.key)' budget=\($0.number).0" }).joined(separator: "\n")
    }

    private func compare(_ nodes: CheckedNode..., limit: Int = 20) throws -> StoreComparison {
        try StoreComparison.compare((nodes.isEmpty ? [a, b] : nodes).map(\.node.path), limit: limit)
    }

    /// The tables that differ.
    private func differing(_ comparison: StoreComparison) -> [String] {
        comparison.tables.filter { $0.divergentCount + $0.behindCount + $0.unpublishedCount > 0 }.map {
            "\($0.name) \($0.divergentCount)/\($0.behindCount)/\($0.unpublishedCount)"
        }
    }

    @Test func convergedStoresAreTheSame() throws {
        let comparison = try compare()
        #expect(comparison.isSound && comparison.differences.isEmpty && differing(comparison) == [])
        #expect(comparison.tables.map(\.name) == ["note", "setting", "stop", "trip"])
        #expect(comparison.tables.map(\.rowCounts) == [[0, 0], [10, 10], [0, 0], [10, 10]])
        #expect(comparison.members.map(\.missing) == [[], []])
    }

    @Test func aDamagedValueIsShownWithItsClockAndBothValues() throws {
        try b.damage("UPDATE setting SET value = 'bad' WHERE key = 'a2'")
        let comparison = try compare()
        #expect(!comparison.isSound && differing(comparison) == ["setting 1/0/0"])
        let difference = try #require(comparison.differences.first)
        #expect(difference.kind == .divergent && difference.column == "value")
        #expect(difference.identity == StableID(values: [.text("a2")]))
        #expect(difference.states.map { $0?.value } == [.integer(2), .text("bad")])
        #expect(difference.states[0]?.stamp == difference.states[1]?.stamp)
        #expect(difference.states[0]?.stamp.node == a.node.engine.node)
    }

    /// Two rows claim one key: the same row is pending on both nodes, and the digests agree.
    @Test func p58AChangeThatIsPendingInAllStoresIsTheSameAndIsListed() throws {
        let lab = try AntiEntropyLab("CREATE TABLE seat(id TEXT PRIMARY KEY NOT NULL, place TEXT UNIQUE)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.node.write("INSERT INTO seat VALUES ('x', '1A'), ('y', '1B')")
        try b.node.write("INSERT INTO seat VALUES ('z', '1A')")
        try exchange([a.node, b.node])
        let comparison = try compare(a, b)
        #expect(comparison.isSound && comparison.differences.isEmpty && differing(comparison) == [])
        #expect(
            comparison.tables.map(\.waiting)
                == [[StoreComparison.Waiting(reason: .unique, rowCounts: [1, 1], valueCounts: [0, 0])]])
        #expect(try StoreDigest.compute(a.node.store) == StoreDigest.compute(b.node.store))
    }

    /// The stores have applied the same transactions, but one shows fewer rows: they are not the same, and their
    /// digests differ, too.
    @Test func p58AChangeThatIsPendingInOneStoreOnlyIsDivergent() throws {
        let lab = try AntiEntropyLab("CREATE TABLE seat(id TEXT PRIMARY KEY NOT NULL, place TEXT)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try b.node.foreignWrite("CREATE UNIQUE INDEX only_here ON seat(place)")
        try a.node.write("INSERT INTO seat VALUES ('x', '1A'), ('y', '1A'), ('z', '2A')")
        try exchange([a.node, b.node])
        let shown = try b.node.rows("SELECT id FROM seat ORDER BY id")
        #expect(shown.count == 2)
        let comparison = try compare(a, b)
        #expect(!comparison.isSound && differing(comparison) == ["seat 1/0/0"])
        let difference = try #require(comparison.differences.first)
        #expect(difference.kind == .divergent && difference.column == nil)
        #expect(difference.identity == StableID(values: [.text(shown[0] == "x" ? "y" : "x")]))
        #expect(difference.states.map { $0?.waits } == [nil, .unique])
        #expect(difference.states[0]?.stamp == difference.states[1]?.stamp)
        #expect(comparison.tables[0].waiting.map(\.rowCounts) == [[0, 1]])
        #expect(try StoreDigest.compute(a.node.store) != StoreDigest.compute(b.node.store))
    }

    /// A child whose parent is on its way is pending for that reason only.
    @Test func p58AChangeThatWaitsForARowOnItsWayIsBehind() throws {
        let c = try lab.node("c")
        try exchange([a.node, c.node])
        try a.node.write("INSERT INTO trip(name) VALUES ('new')")
        try a.node.publish()
        try c.node.consume()
        try c.node.write("INSERT INTO note(trip, text) SELECT id, 't' FROM trip WHERE name = 'new'")
        try c.node.publish()
        // The parent, which precedes the child, is still on its way.
        try lab.lab.rewrite { messages in Array(messages.dropLast(2)) + messages.suffix(1) }
        try b.node.consume()
        #expect(try b.node.rows("SELECT trip, text FROM note") == ["NULL|t"])
        let comparison = try compare(c, b)
        #expect(comparison.isSound && differing(comparison) == ["note 0/1/0", "trip 0/1/0"])
        #expect(
            comparison.tables.flatMap(\.waiting)
                == [StoreComparison.Waiting(reason: .missingTarget, rowCounts: [0, 0], valueCounts: [0, 1])])
    }

    @Test func aLostRowAndALostTombstoneAreDivergent() throws {
        try a.node.write("DELETE FROM setting WHERE key = 'a1'")
        try exchange([a.node, b.node])
        try b.node.loseTombstones()
        try b.damage("DELETE FROM trip WHERE name = 'b2'")
        let comparison = try compare()
        #expect(differing(comparison) == ["setting 1/0/0", "trip 1/0/0"])
        #expect(comparison.differences[0].states.map { $0?.isThere } == [false, nil])
        #expect(comparison.differences[1].states.map { $0?.isThere } == [true, nil])
    }

    @Test func aStoreThatIsBehindIsNotDivergent() throws {
        try a.node.write("UPDATE setting SET value = 'new' WHERE key = 'a2'; INSERT INTO trip(name) VALUES ('new')")
        try a.node.write("DELETE FROM setting WHERE key = 'b2'")
        try a.node.publish()
        try b.node.write("UPDATE setting SET value = 'mine' WHERE key = 'b3'")
        try b.node.publish()
        // Now it is behind and damaged.
        try b.damage("UPDATE trip SET name = 'bad' WHERE name = 'a1'")
        let comparison = try compare()
        #expect(differing(comparison) == ["setting 0/3/0", "trip 1/1/0"])
        #expect(comparison.members[1].missing.map(\.count) == [2])
        #expect(comparison.members[1].missing.map(\.originName) == ["a"])
        #expect(comparison.members[0].missing.map(\.count) == [1])
        #expect(comparison.differences.map(\.kind) == [.divergent, .behind, .behind, .behind, .behind])
        #expect(try compare(limit: 1).differences.map(\.kind) == [.divergent])
        try exchange([a.node, b.node])
        #expect(try differing(compare()) == ["trip 1/0/0"])
    }

    @Test func unstampedWritesAreNotCompared() throws {
        try b.node.foreignWrite("UPDATE setting SET value = 'new' WHERE key = 'a2'; DELETE FROM trip WHERE name = 'a3'")
        try b.node.foreignWrite("INSERT INTO trip(name) VALUES ('new')")
        let comparison = try compare()
        #expect(comparison.isSound && differing(comparison) == [])
        #expect(comparison.members.map(\.uncheckedRowCount) == [0, 2])
        try exchange([a.node, b.node])
        #expect(try compare().members.map(\.uncheckedRowCount) == [0, 0])
    }

    @Test func rowsThatWereNeverPublishedAreCountedSeparately() throws {
        for (node, rows) in [(a, "(1, 'x'), (2, 'y')"), (b, "(2, 'z')")] {
            try node.damage("CREATE TABLE old(key INTEGER PRIMARY KEY, t TEXT); INSERT INTO old VALUES \(rows)")
            _ = try node.node.store.attach(Self.byKey)
        }
        try exchange([a.node, b.node])
        #expect(try differing(compare()) == ["old 1/0/1"])
    }

    private static let byKey: AttachRequest = {
        var request = AttachRequest()
        request.identities = ["old": ["key"]]
        return request
    }()

    @Test func aDamagedStoreAmongThreeIsRepaired() throws {
        let c = try lab.node("c")
        try exchange([a.node, b.node, c.node])
        try b.damage("UPDATE setting SET value = 'bad' WHERE key = 'a2'; DELETE FROM trip WHERE name = 'b2'")
        try c.node.write("UPDATE setting SET value = 'unsent' WHERE key = 'b1'")
        try c.node.publish()
        let before = try compare(a, b, c)
        #expect(differing(before) == ["setting 1/1/0", "trip 1/0/0"])
        let reports = try SyncEngine.repair([a, b, c].map(\.node.engine))
        #expect(reports.map(\.repairedCount) == [0, 2, 0])
        #expect(try differing(compare(a, b, c)) == ["setting 0/1/0"])
        try expectState(b.node, is: state())
        #expect(try Set(b.found()) == ["otherValue repaired setting.value", "missingRow repaired trip"])
        try exchange([a.node, b.node, c.node])
        try expectAll([a.node, b.node, c.node], are: state(["b1": "'unsent'"]))
        try expectSame([a.node, b.node, c.node])
        #expect(try compare(a, b, c).isSound)
    }

    @Test func copiesOfOneStoreAreNotRepaired() throws {
        #expect(throws: StoreError.self) { try SyncEngine.repair([a.node.engine, a.node.engine]) }
    }

    @Test func aStoreThatNeverSyncedCannotBeCompared() throws {
        let path = lab.lab.directory.path("new.sqlite")
        try Store.create(path: path).close()
        let error = #expect(throws: StoreError.self) { try StoreComparison.compare([a.node.path, path]) }
        #expect(error?.code == .invalidArgument)
        #expect(try StoreSoundness.examine(path).isSound)
    }

    @Test func comparingStoresWritesNothing() throws {
        try b.damage("UPDATE setting SET value = 'bad' WHERE key = 'a2'")
        let before = try b.node.rows("PRAGMA data_version") + [String(b.node.logRowCount())]
        _ = try compare()
        _ = try StoreSoundness.examine(b.node.path)
        #expect(try b.node.rows("PRAGMA data_version") + [String(b.node.logRowCount())] == before)
    }

    @Test func theSoundnessReportNamesRowsAndClocksThatDoNotMatch() throws {
        #expect(try StoreSoundness.examine(b.node.path).isSound)
        try b.node.foreignWrite("UPDATE trip SET name = 'new' WHERE name = 'a1'; INSERT INTO setting VALUES ('k', 1)")
        #expect(try StoreSoundness.examine(b.node.path).isSound)
        try b.damage(
            """
            DELETE FROM trip WHERE name = 'a2';
            INSERT INTO trip(name) VALUES ('x'), ('y');
            DELETE FROM setting WHERE key = 'a2';
            INSERT INTO setting VALUES ('x', 1);
            UPDATE \(b.side("trip")) SET node = 77 WHERE row = (SELECT id FROM trip WHERE name = 'a3');
            UPDATE \(b.side("trip")) SET hlc = hlc * 2 WHERE row = (SELECT id FROM trip WHERE name = 'a4');
            INSERT INTO stop(trip, place) VALUES (999, 'nowhere');
            """)
        let found = try StoreSoundness.examine(b.node.path)
        #expect(!found.isSound && found.integrity == "ok" && found.foreignKeyViolationCount == 1)
        #expect(found.vanished == ["trip": 1, "setting": 1])
        #expect(found.appeared == ["trip": 2, "setting": 1, "stop": 1])
        #expect(found.badClocks == ["trip": 2])
    }
}
