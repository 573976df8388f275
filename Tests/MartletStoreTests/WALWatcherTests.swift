import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct WALWatcherTests {
    /// The kernel may have no memory for a wait, and not every file system reports what others write.
    @Test(arguments: [-1, 0]) func theWatcherNoticesACommitWithoutAnEvent(ready: Int32) throws {
        let temporary = try TemporaryStore("CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)")
        let watcher = try WALWatcher(store: temporary.path) {
            errno = ENOMEM
            return ready
        }
        try temporary.raw("INSERT INTO t VALUES ('a')")
        var count = 0
        // The loop ends only when the watcher reports the commit.
        watcher.run {
            count += 1
            watcher.stop()
        }
        #expect(count == 1)
    }

    /// A commit that is synced becomes visible a while after its event.
    @Test func theWatcherNoticesACommitWhileAnotherFileOfTheFolderKeepsChanging() throws {
        let temporary = try TemporaryStore("CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)")
        let waits = Mutex(0)
        // More than the program gets done while the watcher checks.
        let most = 5_000_000
        let watcher = try WALWatcher(store: temporary.path) {
            let wait = waits.withLock { waits in
                waits += 1
                return waits
            }
            // An event of the log ends the first wait, and the last one at the latest; events of the other file end the
            // others.
            if wait == 1 || wait >= most { return nil }
            if wait == 100 { try? temporary.raw("INSERT INTO t VALUES ('b')") }
            return 1
        }
        try temporary.raw("INSERT INTO t VALUES ('a')")
        var count = 0
        watcher.run {
            count += 1
            if count == 2 { watcher.stop() }
        }
        #expect(count == 2 && waits.withLock { $0 } < most)
    }

    @Test func theWatcherEndsWhileTheKernelRefusesToWait() throws {
        let temporary = try TemporaryStore("CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)")
        let watcher = try WALWatcher(store: temporary.path) {
            errno = ENOMEM
            return -1
        }
        watcher.stop()
        watcher.run {}
    }

    @Test(arguments: [true, false]) func theWatcherReportsAStoreThatIsReplacedOrMoved(isReplaced: Bool) throws {
        let temporary = try TemporaryStore("CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)")
        let watcher = try WALWatcher(store: temporary.path)
        try watcher.checkIsInPlace()
        try temporary.moveAway(replacing: isReplaced)
        watcher.run { watcher.stop() }
        #expect(throws: StoreError.self) { try watcher.checkIsInPlace() }
    }

    /// No event tells of it: the link is in another folder than the file.
    @Test func theWatcherReportsALinkThatLeadsToAnotherStore() throws {
        let temporary = try TemporaryStore("CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)")
        let other = try TemporaryStore("CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)")
        let links = try TemporaryFolder()
        let link = links.path("link.db")
        #expect(symlink(temporary.path, link) == 0)
        let watcher = try WALWatcher(store: link) { 0 }
        try watcher.checkIsInPlace()
        #expect(symlink(other.path, links.path("new.db")) == 0)
        #expect(rename(links.path("new.db"), link) == 0)
        watcher.run { watcher.stop() }
        let error = #expect(throws: StoreError.self) { try watcher.checkIsInPlace() }
        #expect(error?.code == .moved)
    }

    @Test func aFollowerOfAStoreEndsWhenItIsReplaced() throws {
        let temporary = try TemporaryStore("CREATE TABLE t(x TEXT PRIMARY KEY NOT NULL)")
        var isFirst = true
        let error = #expect(throws: StoreError.self) {
            try StoreChanges.watch(temporary.path) {
                if isFirst { try temporary.moveAway(replacing: true) }
                isFirst = false
            }
        }
        #expect(error?.code == .moved)
    }

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
