import Foundation
import GRDB
import MartletStore
import Testing

struct WALWatcherTests {
    @Test func theWatcherNoticesACommitFromBeforeItRuns() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "watch-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "s.db").path
        let store = try Store.create(path: path)
        let watcher = try WALWatcher(store: path)
        try store.database.write { try $0.execute(sql: "CREATE TABLE t(x)") }
        var count = 0
        // The loop ends only when the watcher reports the commit.
        watcher.run {
            count += 1
            watcher.stop()
        }
        #expect(count == 1)
        try store.close()
    }

    @Test func writeTransactionReturnsTheTokenOfItsTransaction() throws {
        let store = try Store.create(path: ":memory:")
        try store.database.write { try $0.execute(sql: "CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)") }
        var request = AttachRequest()
        request.tables = ["t"]
        _ = try store.attach(request)
        let token = try store.writeTransaction(author: "a") { try $0.execute(sql: "INSERT INTO t VALUES ('x')") }.token
        #expect(token != nil)
        #expect(token == (try store.lastToken()))
        #expect(try store.writeTransaction { try $0.execute(sql: "DELETE FROM t WHERE x = 'y'") }.token == nil)
    }
}
