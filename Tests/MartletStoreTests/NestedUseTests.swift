import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Calls to a store from a closure that holds its connection.
@Suite struct NestedUseTests {
    @Test func aNestedCallFailsAndTheTransactionContinues() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        let store = temporary.store
        let uses: [() throws -> Void] = [
            { try store.write { _ in } }, { _ = try store.fetchHistory() }, { _ = try store.cursors() },
            { try store.setCursor("reader", to: nil) }, { _ = try store.trackedEntities() }, { try store.close() },
        ]
        try store.write(author: "me") { db in
            try db.execute(sql: "INSERT INTO item VALUES (1, 1)")
            for use in uses {
                #expect {
                    try use()
                } throws: {
                    ($0 as? StoreError)?.code == .nestedUse
                }
            }
            try db.execute(sql: "INSERT INTO item VALUES (2, 1)")
        }
        let transactions = try store.fetchHistory()
        #expect(transactions.map { $0.changes.map(\.row) } == [[1, 2]])
        #expect(transactions.map(\.author) == ["me"])
        for use in uses { try use() }
    }
}
