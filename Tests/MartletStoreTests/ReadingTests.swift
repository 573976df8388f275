import GRDB
import MartletStore
import MartletTestSupport
import Synchronization
import Testing

/// Side effects of reading the history.
@Suite struct ReadingTests {
    private final class Observer: TransactionObserver, Sendable {
        let calls = Mutex<[String]>([])

        func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseWillCommit() { calls.withLock { $0.append("will commit") } }
        func databaseDidCommit(_ db: Database) { calls.withLock { $0.append("did commit") } }
        func databaseDidRollback(_ db: Database) { calls.withLock { $0.append("did roll back") } }
    }

    @Test func readsDoNotNotifyTransactionObservers() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        let other = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        let store = temporary.store
        try store.write { try $0.execute(sql: "INSERT INTO item VALUES (1, 1)") }
        try other.store.write { try $0.execute(sql: "INSERT INTO item VALUES (1, 1)") }
        let observer = Observer()
        store.database.add(transactionObserver: observer, extent: .databaseLifetime)
        _ = try store.fetchHistory()
        _ = try store.cursors()
        // A read that fails midway.
        let foreign = try other.store.lastToken()
        #expect {
            try store.fetchHistory(HistoryQuery(after: foreign))
        } throws: {
            ($0 as? StoreError)?.code == .historyTokenExpired
        }
        #expect(observer.calls.withLock { $0 } == [])
        try store.write { try $0.execute(sql: "INSERT INTO item VALUES (2, 1)") }
        #expect(observer.calls.withLock { $0 } == ["will commit", "did commit"])
    }
}
