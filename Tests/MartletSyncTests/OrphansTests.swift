import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows that leave their tables, and the integer keys by which others may still refer to them.
@Suite struct OrphansTests {
    @Test func integerKeysAreHeldUntilTheRowsThatLeftThemAreSettled() throws {
        let lab = try Lab()
        let node = try lab.node("a")
        let (trip, note) = (try node.entity("trip"), try node.entity("note"))
        try node.withContext { _, context in
            func name(_ number: Int64, of entity: Entity) -> RowIdentity {
                RowIdentity(entity: entity.id, identity: StableID(values: [.integer(number)]))
            }
            func orphan(_ number: Int64, of entity: Entity, row: Int64?, isHere: Bool = false) -> Orphan {
                Orphan(
                    table: context.table(entity), identity: name(number, of: entity).identity, row: row, values: [:],
                    isHere: isHere)
            }
            let (one, two) = (name(1, of: trip), name(2, of: trip))
            var orphans = Orphans()
            #expect(orphans.isEmpty && orphans.row(of: one) == nil && !orphans.hold(5, besides: two))
            orphans.append(orphan(1, of: trip, row: 5))
            orphans.append(orphan(1, of: trip, row: 5))
            orphans.append(orphan(1, of: trip, row: 6))
            orphans.append(orphan(1, of: note, row: 8))
            orphans.append(orphan(2, of: trip, row: 9, isHere: true))
            orphans.append(orphan(2, of: trip, row: 5))
            orphans.append(orphan(2, of: trip, row: nil))
            #expect(orphans.count == 7)
            // No number of another table, or of a row that is still there.
            #expect(!orphans.hold(8, besides: two) && !orphans.hold(9, besides: one))
            #expect(orphans.row(of: one) == 6 && orphans.row(of: two) == nil)
            #expect(orphans.hold(5, besides: one) && orphans.hold(5, besides: two))
            var last = orphans.popLast()
            #expect(last?.identity == two.identity && last?.row == nil)
            #expect(orphans.row(of: two) == 5)
            last = orphans.popLast()
            #expect(last?.row == 5 && orphans.row(of: two) == nil)
            #expect(!orphans.hold(5, besides: one) && orphans.hold(5, besides: two))
            last = orphans.popLast()
            #expect(last?.isHere == true)
            last = orphans.popLast()
            #expect(last?.entity == note)
            last = orphans.popLast()
            #expect(last?.row == 6 && orphans.row(of: one) == 5 && !orphans.hold(6, besides: two))
            last = orphans.popLast()
            #expect(last?.row == 5 && orphans.row(of: one) == 5 && orphans.hold(5, besides: two))
            last = orphans.popLast()
            #expect(last?.row == 5 && orphans.row(of: one) == nil && !orphans.hold(5, besides: two))
            last = orphans.popLast()
            #expect(last == nil && orphans.isEmpty)
        }
    }

    /// With work for each insert that grows with the number of deleted rows, this would take minutes.
    @Test(.timeLimit(.minutes(5))) func oneTransactionReplacesManyRowsToWhichOthersMayRefer() throws {
        let lab = try Lab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        func insert(_ name: String) -> String {
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
            INSERT INTO trip(name) SELECT '\(name)' || i FROM n
            """
        }
        try a.write(insert("old"))
        try a.write("INSERT INTO note(trip, text) SELECT id, 'of old' FROM trip WHERE name = 'old7'")
        try exchange([a, b])
        try a.write("DELETE FROM trip; " + insert("new"))
        try exchange([a, b])
        let trips = "SELECT id, name FROM trip ORDER BY id"
        #expect(try b.rows("SELECT count(*), min(id), max(id) FROM trip") == ["10000|10001|20000"])
        #expect(try b.rows(trips) == a.rows(trips))
        #expect(try b.rows("SELECT trip, text FROM note") == ["NULL|of old"])
        try expectAgreement([a, b])
    }
}
