import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// The code of docs/swift.md; the test of the documents compares the two.
@Suite struct ReadmeTests {
    @Test func aProgramWritesUnderAnAuthorAndReadsLocalChangesSinceAToken() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO note VALUES (7, 'Bread')")
        let lastSeen = try temporary.store.lastToken()
        let path = temporary.path
        var seen: [String?] = []

        let store = try Store(path: path)
        try store.write(author: "app") { db in
            try db.execute(sql: "UPDATE note SET title = ? WHERE id = ?", arguments: ["Milk", 7])
        }
        let query = HistoryQuery(after: lastSeen, author: .notEqual(TransactionAuthor.sync))
        for transaction in try store.fetchHistory(query) {
            seen.append(transaction.author)
        }

        #expect(seen == ["app"])
        #expect(try temporary.changes(after: lastSeen) == [#"update note#7 title="Milk""#])
        try store.close()
    }
}
