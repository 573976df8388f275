import MartletStore
import MartletSync
import MartletTestSupport
import Testing

extension LocalConstraintTests {
    // MARK: Rows and references that wait for a target

    @Test func p119ARowWithTheSameKeyInOtherCaseIsNotItsOwnTarget() throws {
        let (lab, nodes) = try pair(
            "CREATE TABLE part(k TEXT PRIMARY KEY NOT NULL, of TEXT NOT NULL REFERENCES part(k))")
        try nodes[0].write("INSERT INTO part VALUES ('k2', 'k2')")
        try exchange(nodes)
        try nodes[1].write("INSERT INTO part VALUES ('K2', 'k2')")
        try exchange(nodes)
        try nodes[0].foreignWrite("DELETE FROM part WHERE k = 'k2'")
        let all = try withLate(lab, nodes)
        try expectSame(all, are: "pending missingTarget part k='K2' of='k2'")
        // The rows need each other, and each one has the other.
        try nodes[1].foreignWrite("INSERT INTO part VALUES ('k2', 'K2')")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                part k='K2' of='k2'
                part k='k2' of='K2'
                """)
    }

    @Test func p119ACaseInsensitiveKeyMakesARowInOtherCaseItsOwnTarget() throws {
        let (lab, nodes) = try pair(
            "CREATE TABLE part(k TEXT PRIMARY KEY NOT NULL COLLATE NOCASE, of TEXT NOT NULL REFERENCES part(k))")
        try nodes[0].foreignWrite("INSERT INTO part VALUES ('K2', 'k2')")
        try expectSame(withLate(lab, nodes), are: "part k='K2' of='k2'")
    }

    @Test func p120OneNullColumnClearsAForeignKeyOfSeveralColumns() throws {
        let (lab, nodes) = try pair(
            """
            CREATE TABLE box(id INTEGER PRIMARY KEY, r INTEGER, label BLOB,
              FOREIGN KEY (r, label) REFERENCES slot(k, l));
            CREATE TABLE slot(k INTEGER NOT NULL REFERENCES box(id), l, PRIMARY KEY (k, l));
            """)
        try nodes[0].write("INSERT INTO box(id) VALUES (1), (2); INSERT INTO slot VALUES (2, 'x')")
        try exchange(nodes)
        try nodes[0].write("INSERT INTO box VALUES (3, 2, 'x')")
        // First the label loses its target, and then the number.
        try nodes[1].foreignWrite("DELETE FROM slot")
        try exchange(nodes)
        try nodes[1].foreignWrite("DELETE FROM box WHERE id = 2")
        let all = try withLate(lab, nodes)
        try expectSame(
            all,
            are: """
                box r=NULL label='x'
                box r=NULL label=NULL
                pending missingTarget box r=->?
                """)
    }

    @Test func p123ARowThatCameBackWithAnotherKeyFreesItsFormerOneForPendingRows() throws {
        let (_, nodes) = try pair(
            "CREATE TABLE part(k TEXT PRIMARY KEY NOT NULL, of TEXT NOT NULL REFERENCES part(k), label TEXT UNIQUE)")
        let (a, b) = (nodes[0], nodes[1])
        try b.write("INSERT INTO part VALUES ('x', 'x', 'l0')")
        try exchange(nodes)
        try b.write("UPDATE part SET label = 'l1'")
        // The row takes the label from the row that it needs: both are pending.
        try a.write("INSERT INTO part VALUES ('y', 'x', 'l1')")
        try a.publish()
        try b.consume()
        try expectState(
            b,
            is: """
                pending missingTarget part k='y' of='x' label='l1'
                pending unique part k='x' of='x' label='l1'
                """)
        try a.write("UPDATE part SET of = 'y', label = 'l2' WHERE k = 'y'")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                part k='x' of='x' label='l1'
                part k='y' of='y' label='l2'
                """)
    }
}
