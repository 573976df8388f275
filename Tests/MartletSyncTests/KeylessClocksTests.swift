import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Clocks that are stored without an integer key, in a table whose rows have one.
@Suite struct KeylessClocksTests {
    @Test func clocksWithoutAKeyAreNotStoredUnderTheKeyOfTheNextRow() throws {
        let lab = try Lab("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO item VALUES (1, 'x')")
        try exchange([a, b])
        let entity = try a.entity("item")
        try a.engine.session.transaction { db, context in
            let table = context.table(entity)
            let kept = try #require(try table.keptIdentity(db, row: 1))
            let clocks = try #require(try table.clocks(db, row: 1, kept))
            // A row that exists gets its clocks; one that doesn't gets none.
            try table.saveClocks(db, row: nil, kept, clocks)
            try table.saveClocks(db, row: nil, StableID(values: [.text("gone")]), RowClocks(inserted: .zero))
            #expect(try table.keptIdentity(db, row: 1) == kept)
            #expect(try table.keptIdentity(db, row: 2) == nil)
        }
        try a.write("INSERT INTO item VALUES (2, 'y')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item name='x'
                item name='y'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }
}
