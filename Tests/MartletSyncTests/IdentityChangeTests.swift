import MartletStore
import MartletTestSupport
import Testing

/// For all other nodes, a change of identity is a delete and an insert.
@Suite struct IdentityChangeTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab(Company.schema, partitions: 2, request: Company.request)
        a = try lab.node("a")
        b = try lab.node("b")
    }

    private func expectEqual(_ nodes: [TestNode]) throws {
        let late = try lab.node("late")
        try late.consume()
        let expected = try Company.contents(nodes[0])
        for node in nodes + [late] {
            #expect(try Company.contents(node) == expected)
            #expect(try node.rows("PRAGMA foreign_key_check") == [])
            #expect(try Waiting.unexpected(node) == [])
        }
    }

    @Test func p19TheOriginKeepsTheRowAndChildrenFollow() throws {
        try a.write(
            """
            INSERT INTO person(name) VALUES ('x');
            INSERT INTO project(id, code, title) VALUES (5, 'old', 'title');
            INSERT INTO task(title, project) VALUES ('t', 5);
            INSERT INTO membership VALUES (1, 5, 'lead');
            """)
        try exchange([a, b])
        try a.write("UPDATE project SET code = 'new'")
        try exchange([a, b])
        #expect(try a.rows("SELECT id, code, title FROM project") == ["5|new|title"])
        try expectBoth(
            a, b,
            are: """
                membership person=->'x' project=->'new' role='lead'
                person name='x' score=NULL boss=NULL
                project code='new' title='title' owner=NULL
                task title='t' project=->'new' assignee=NULL label=NULL
                """)
        try b.write(
            "UPDATE membership SET role = 'member'; UPDATE task SET title = 'u'; UPDATE project SET title = 'other'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                membership person=->'x' project=->'new' role='member'
                person name='x' score=NULL boss=NULL
                project code='new' title='other' owner=NULL
                task title='u' project=->'new' assignee=NULL label=NULL
                """)
        try expectEqual([a, b])
    }

    @Test(arguments: ["code TEXT PRIMARY KEY NOT NULL", "id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE"])
    func p19ARowThatRefersToItselfFollowsItsOwnID(columns: String) throws {
        var request = AttachRequest()
        request.identities = ["part": ["code"]]
        let lab = try Lab(
            "CREATE TABLE part(\(columns), title TEXT, whole TEXT REFERENCES part(code) ON UPDATE CASCADE)",
            request: request)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO part(code, title, whole) VALUES ('p', 'one', 'p'), ('q', 'two', 'p')")
        try exchange([a, b])
        try a.write("UPDATE part SET code = 'r' WHERE code = 'p'")
        try exchange([a, b])
        try a.write(
            "UPDATE part SET code = 's', title = 'three' WHERE code = 'r'; UPDATE part SET code = 't' WHERE code = 's'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                part code='q' title='two' whole='t'
                part code='t' title='three' whole='t'
                """)
        for node in [a, b] {
            #expect(try Waiting.unexpected(node) == [])
            #expect(try node.store.audit().isClean)
        }
        try b.write("UPDATE part SET title = 'four', whole = NULL WHERE code = 't'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                part code='q' title='two' whole='t'
                part code='t' title='four' whole=NULL
                """)
    }

    @Test func p19AFormerIdentityCanBeReused() throws {
        try a.write("INSERT INTO project(code, title) VALUES ('p', 'one')")
        try exchange([a, b])
        try a.write("UPDATE project SET code = 'q'; INSERT INTO project(code, title) VALUES ('p', 'two')")
        try a.write("UPDATE project SET code = 'r' WHERE code = 'p'; UPDATE project SET code = 'p' WHERE code = 'q'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                project code='p' title='one' owner=NULL
                project code='r' title='two' owner=NULL
                """)
        try expectEqual([a, b])
    }

    @Test func everyNodeDecidesAlikeAboutARenamedRowThatWasChangedElsewhere() throws {
        try a.write(
            """
            INSERT INTO person(name) VALUES ('x');
            INSERT INTO project(code) VALUES ('p');
            INSERT INTO membership VALUES (1, 1, 'r')
            """
        )
        try exchange([a, b])
        try a.write("UPDATE project SET code = 'q'")
        try b.write(
            """
            UPDATE project SET title = 'edit';
            UPDATE membership SET role = 'edit';
            INSERT INTO task(title, project) VALUES ('t', 1)
            """
        )
        try exchange([a, b])
        // The edits are of rows that the rename deleted, and the task refers to one of them.
        try expectBoth(
            a, b,
            are: """
                membership person=->'x' project=->'q' role='r'
                person name='x' score=NULL boss=NULL
                project code='q' title=NULL owner=NULL
                pending missingTarget task title='t' project=->'p'
                """)
        try expectEqual([a, b])
    }

    @Test func aChangedIntegerKeyChangesNothingOnOtherNodes() throws {
        try a.write(
            """
            INSERT INTO person(name) VALUES ('x');
            INSERT INTO membership SELECT 1, 1, 'r' WHERE 0;
            INSERT INTO seat(place, person) VALUES ('p', 1);
            INSERT INTO profile VALUES (1, 'b')
            """
        )
        try exchange([a, b])
        try a.write("UPDATE person SET id = 50 WHERE id = 1")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                person name='x' score=NULL boss=NULL
                profile id=->'x' bio='b'
                seat place='p' email=NULL person=->'x'
                """)
        try b.write("UPDATE person SET name = 'y'")
        try exchange([a, b])
        #expect(try a.rows("SELECT id, name FROM person") == ["50|y"])
        try expectBoth(
            a, b,
            are: """
                person name='y' score=NULL boss=NULL
                profile id=->'y' bio='b'
                seat place='p' email=NULL person=->'y'
                """)
        try expectEqual([a, b])
    }

    /// The deleted row had the highest integer key, which SQLite gives to the next row.
    @Test func aNewRowIsNotMistakenForADeletedOneByRowsThatReferredToIt() throws {
        try a.write("INSERT INTO project(code) VALUES ('old')")
        try exchange([a, b])
        try b.write("INSERT INTO task(title, project) VALUES ('t', 1)")
        try a.write("DELETE FROM project; INSERT INTO project(code) VALUES ('new')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                project code='new' title=NULL owner=NULL
                pending missingTarget task title='t' project=->'old'
                """)
        try a.write("INSERT INTO project(code) VALUES ('old')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                project code='new' title=NULL owner=NULL
                project code='old' title=NULL owner=NULL
                task title='t' project=->'old' assignee=NULL label=NULL
                """)
    }
}
