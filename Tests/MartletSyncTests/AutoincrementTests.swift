import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Numbers of rows in tables with `AUTOINCREMENT`, which SQLite itself never assigns again.
@Suite struct AutoincrementTests {
    private func numbers(_ node: TestNode, of name: String) throws -> [String] {
        try node.rows("SELECT id FROM trip WHERE name = '\(name)'")
    }

    @Test func theNumberOfADeletedRowGoesToNoRemoteRow() throws {
        let lab = try Lab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        for number in 1...7 { try a.write("INSERT INTO trip(name) VALUES ('trip \(number)')") }
        try exchange([a, b])
        try a.write("INSERT INTO trip(name) VALUES ('short')")
        try a.write("DELETE FROM trip WHERE name = 'short'")
        try b.write("INSERT INTO trip(name) VALUES ('of b')")
        try b.write("INSERT INTO note(trip, text) SELECT id, 'about it' FROM trip WHERE name = 'of b'")
        try exchange([a, b])
        #expect(try numbers(b, of: "of b") == ["8"])
        #expect(try numbers(a, of: "of b") == ["9"])
        #expect(try a.rows("SELECT trip, text FROM note") == ["9|about it"])
        // A number that no row had is taken over, whichever numbers others have.
        try b.write("INSERT INTO trip(id, name) VALUES (20, 'twenty'), (15, 'fifteen')")
        try exchange([a, b])
        #expect(try numbers(a, of: "twenty") == ["20"])
        #expect(try numbers(a, of: "fifteen") == ["15"])
        // The same for a row that was deleted by another node, on all that had it.
        try b.write("DELETE FROM trip WHERE name = 'twenty'")
        try exchange([a, b])
        let c = try lab.node("c")
        try c.write("INSERT INTO trip(id, name) VALUES (20, 'of c')")
        try exchange([a, b, c])
        for node in [a, b] { #expect(try numbers(node, of: "of c") == ["21"], "\(node.name)") }
        try expectAgreement([a, b, c])
    }

    @Test func theNumberOfADeletedRowGoesToNoRowOfASnapshot() throws {
        let lab = try SnapshotLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO trip(name) VALUES ('short')")
        try a.write("DELETE FROM trip")
        try b.write("INSERT INTO trip(name) VALUES ('first'), ('second')")
        try a.publish()
        try exchange([b])
        let snapshot = try b.makeSnapshot().id
        #expect(try a.snapshots?.load(snapshot, partitionCount: 2)?.isFinished == true)
        #expect(try a.rows("SELECT name, id FROM trip ORDER BY name") == ["first|2", "second|3"])
        try exchange([a, b])
        try expectSame([a, b])
    }

    @Test func aRowComesBackUnderItsOwnNumber() throws {
        let lab = try Lab("CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, note TEXT)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO trip(name, note) VALUES ('Alps', 'of a')")
        try b.write("INSERT INTO trip(name, note) VALUES ('Alps', 'of b')")
        try exchange([a, b])
        #expect(try a.rows("SELECT id, note FROM trip") == ["2|of b"])
        try b.write("DELETE FROM trip")
        try exchange([a, b])
        #expect(try a.rows("SELECT id, note FROM trip") == ["1|of a"])
        #expect(try b.rows("SELECT id, note FROM trip") == ["2|of a"])
        try expectAgreement([a, b])
    }

    /// Without the keyword, SQLite assigns such numbers again, too.
    @Test func numbersOfOtherTablesAreTakenOver() throws {
        let lab = try Lab("CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT, autoincrement_ TEXT)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO trip(name) VALUES ('short')")
        try a.write("DELETE FROM trip")
        try b.write("INSERT INTO trip(name) VALUES ('of b')")
        try exchange([a, b])
        #expect(try numbers(a, of: "of b") == ["1"])
    }
}
