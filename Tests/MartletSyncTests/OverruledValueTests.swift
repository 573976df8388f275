import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Values of a pending row that a delete has overruled, although the row was inserted again.
@Suite struct OverruledValueTests {
    /// A delete overrules values of a pending row that was inserted again without them, on every node.
    @Test(arguments: [false, true])
    func aDeleteOverrulesValuesOfAPendingRowThatSurvives(upgradesFirst: Bool) throws {
        let lab = try Lab(
            "CREATE TABLE stop(name TEXT PRIMARY KEY NOT NULL, next TEXT NOT NULL REFERENCES stop(name))")
        let a = try lab.node("a")
        let b = try lab.node("b")
        let upgrade = "ALTER TABLE stop ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"
        try b.write(upgrade)
        try b.write("INSERT INTO stop VALUES ('x', 'x', 'gone')")
        try b.write("DELETE FROM stop")
        // This node has another schema, so its insert doesn't set the column.
        try a.foreignWrite(
            "INSERT INTO stop VALUES ('x', 'y'), ('y', 'y'); DELETE FROM stop WHERE name = 'y'")
        if upgradesFirst { try a.write(upgrade) }
        try exchange([a, b])
        if !upgradesFirst { try a.write(upgrade) }
        try exchange([a, b])
        try expectBoth(a, b, are: "pending missingTarget stop name='x' next='y'")
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        try b.foreignWrite("INSERT INTO stop VALUES ('y', 'y', 'new')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                stop name='x' next='y' note='none'
                stop name='y' next='y' note='new'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }
}
