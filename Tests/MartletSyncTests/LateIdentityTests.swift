import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows whose key is NULL at first, and rows whose key becomes NULL again.
@Suite struct LateIdentityTests {
    private static let items = """
        CREATE TABLE item(sku TEXT PRIMARY KEY, name TEXT, n INT);
        CREATE TABLE place(x INT, y INT, name TEXT, PRIMARY KEY(x, y));
        """

    @Test(arguments: [false, true]) func p46ARowThatGetsItsKeyLaterIsInsertedThen(keepsOldValues: Bool) throws {
        var request = AttachRequest()
        request.keepsOldValues = keepsOldValues
        let lab = try Lab(Self.items, request: request)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite(
            """
            INSERT INTO item VALUES (NULL, 'first', 1), (NULL, 'second', 2);
            INSERT INTO place VALUES (1, NULL, 'half'), (NULL, NULL, 'none');
            """)
        try exchange([a, b])
        try a.foreignWrite("UPDATE item SET name = 'changed', n = 7 WHERE name = 'first'")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                item sku=NULL name='changed' n=7
                item sku=NULL name='second' n=2
                place x=1 y=NULL name='half'
                place x=NULL y=NULL name='none'
                """)
        try expectState(b, is: "nothing")
        #expect(try a.store.rowsWithoutIdentity() == ["item": 2, "place": 2])
        try a.foreignWrite(
            """
            UPDATE item SET sku = 'S1' WHERE name = 'changed';
            UPDATE item SET n = 8 WHERE sku = 'S1';
            UPDATE place SET y = 2 WHERE name = 'half';
            """)
        try exchange([a, b])
        try expectState(
            a,
            is: """
                item sku='S1' name='changed' n=8
                item sku=NULL name='second' n=2
                place x=1 y=2 name='half'
                place x=NULL y=NULL name='none'
                """)
        try expectState(
            b,
            is: """
                item sku='S1' name='changed' n=8
                place x=1 y=2 name='half'
                """)
        #expect(try a.store.rowsWithoutIdentity() == ["item": 1, "place": 1])
        try b.foreignWrite("UPDATE item SET n = 9")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                item sku='S1' name='changed' n=9
                item sku=NULL name='second' n=2
                place x=1 y=2 name='half'
                place x=NULL y=NULL name='none'
                """)
        #expect(try a.store.audit().isClean && b.store.audit().isClean)
    }

    @Test func p46ARowThatLosesItsKeyIsGoneElsewhereUntilItHasOneAgain() throws {
        let lab = try Lab(Self.items)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO item VALUES ('S1', 'first', 1); INSERT INTO place VALUES (1, 2, 'p')")
        try exchange([a, b])
        try a.foreignWrite("UPDATE item SET sku = NULL; UPDATE place SET x = NULL")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                item sku=NULL name='first' n=1
                place x=NULL y=2 name='p'
                """)
        try expectState(b, is: "nothing")
        #expect(try a.store.audit().isClean)
        try a.foreignWrite("UPDATE item SET sku = 'S1', n = 2; UPDATE place SET x = 5")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item sku='S1' name='first' n=2
                place x=5 y=2 name='p'
                """)
        try expectSame([a, b])
    }

    @Test func p46AKeyTakenFromAnotherRowIdentifiesTheNewRow() throws {
        let lab = try Lab(Self.items)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO item VALUES ('S1', 'old', 1), (NULL, 'new', 2)")
        try exchange([a, b])
        try a.foreignWrite("UPDATE OR REPLACE item SET sku = 'S1' WHERE name = 'new'")
        try exchange([a, b])
        try expectBoth(a, b, are: "item sku='S1' name='new' n=2")
        try expectSame([a, b])
    }

    private static let numbered = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, sku TEXT UNIQUE, name TEXT);
        CREATE TABLE part(id INTEGER PRIMARY KEY, item INT REFERENCES item(id));
        INSERT INTO item VALUES (1, NULL, 'there'), (2, NULL, 'before'), (3, NULL, 'all');
        """

    @Test(arguments: [false, true]) func p46ARowFromBeforeTheAttachIsInsertedOnceItHasAKey(recordsIDs: Bool) throws {
        var request = AttachRequest()
        request.identities = ["item": ["sku"]]
        let lab = try Lab(Self.numbered, request: request)
        let a = try lab.node("a")
        let b = try lab.node("b", schema: Self.numbered.components(separatedBy: "INSERT")[0])
        #expect(try a.store.rowsWithoutIdentity() == ["item": 3])
        // Such a row gets an ID assigned by Martlet, and IDs are looked up from then on.
        if recordsIDs { try a.foreignWrite("INSERT INTO item VALUES (9, NULL, 'later')") }
        try exchange([a, b])
        try a.foreignWrite(
            "UPDATE item SET sku = 'S' || id, name = name || '!' WHERE id < 3; INSERT INTO part VALUES (1, 2)")
        if recordsIDs { try a.foreignWrite("UPDATE item SET sku = 'S9' WHERE id = 9") }
        try exchange([a, b])
        let last = recordsIDs ? "\nitem sku='S9' name='later'" : ""
        try expectState(
            a,
            is: """
                item sku='S1' name='there!'
                item sku='S2' name='before!'\(last)
                item sku=NULL name='all'
                part item=->'S2'
                """)
        try expectState(
            b,
            is: """
                item sku='S1' name='there!'
                item sku='S2' name='before!'\(last)
                part item=->'S2'
                """)
        #expect(try a.store.rowsWithoutIdentity() == ["item": 1])
        #expect(try a.store.audit().isClean && b.store.audit().isClean)
    }
}
