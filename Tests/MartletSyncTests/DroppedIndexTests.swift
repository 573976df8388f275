import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Tables whose rows are identified by columns, after a program has dropped the index that kept those unique.
@Suite struct DroppedIndexTests {
    private static let index = "CREATE UNIQUE INDEX tag_name ON tag(name)"
    let lab: Lab

    init() throws {
        var request = AttachRequest()
        request.identities = ["tag": ["name"]]
        lab = try Lab("CREATE TABLE tag(name TEXT NOT NULL, note TEXT); \(Self.index);", request: request)
    }

    @Test func twoInsertsOfOneIdentityMakeOneRow() throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        #expect(try b.entity("tag").hasUniqueIdentity)
        try b.foreignWrite("DROP INDEX tag_name")
        try a.write("INSERT INTO tag VALUES ('k', 'of a'), ('only a', NULL)")
        try b.write("INSERT INTO tag VALUES ('k', 'of b')")
        try exchange([a, b])
        let expected = """
            tag name='k' note='of b'
            tag name='only a' note=NULL
            """
        try expectBoth(a, b, are: expected)
        try expectAgreement([a, b])
        #expect(try !b.entity("tag").hasUniqueIdentity)
        try b.foreignWrite(Self.index)
        try exchange([a, b])
        #expect(try b.entity("tag").hasUniqueIdentity)
        try expectBoth(a, b, are: expected)
    }

    @Test func aDeleteOfRowsWithOneIdentityIsInTheHistory() throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO tag VALUES ('k', 'first')")
        try exchange([a, b])
        try b.foreignWrite("DROP INDEX tag_name")
        try b.foreignWrite("INSERT INTO tag VALUES ('k', 'second')")
        try exchange([a, b])
        try expectState(a, is: "tag name='k' note='second'")
        try a.write("DELETE FROM tag")
        try exchange([a, b])
        try expectBoth(a, b, are: WholeState.nothing)
        let last = try #require(try b.store.fetchHistory().last { $0.author == TransactionAuthor.sync })
        #expect(last.changes.map(\.kind) == [.delete])
    }
}
