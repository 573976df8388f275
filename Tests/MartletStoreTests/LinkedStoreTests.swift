import Dispatch
import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Stores that are opened through a symbolic link.
@Suite struct LinkedStoreTests {
    @Test func p32aStaleLogIsFoundThroughASymbolicLink() throws {
        let folder = try TemporaryFolder()
        let live = folder.path("live.db")
        try ForeignProgram.shell.run("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE)", on: live)
        var configuration = StoreConfiguration()
        configuration.walAutocheckpointPages = 1_000_000
        let store = try Store.create(path: live, configuration: configuration)
        _ = try store.attach(.init())
        func insert(_ count: Int) throws {
            try store.write { db in
                for _ in 0..<count { try db.execute(sql: "INSERT INTO item(name) VALUES (hex(randomblob(40)))") }
            }
        }
        func copy(_ from: String, _ to: String) throws {
            _ = try ForeignProgram.launch("cp", [folder.path(from), folder.path(to)], input: "")
        }
        try insert(10)
        try ForeignProgram.shell.run("PRAGMA wal_checkpoint(TRUNCATE)", on: live)
        try copy("live.db", "backup")
        try insert(2000)
        try ForeignProgram.shell.run("PRAGMA wal_checkpoint(TRUNCATE)", on: live)
        try insert(50)
        try copy("live.db-wal", "store.db-wal")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: folder.path("store.db-wal"))
        try copy("backup", "store.db")
        try store.close()
        let link = folder.path("link.db")
        #expect(symlink(folder.path("store.db"), link) == 0)
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.path("store.db")))
        let error = #expect(throws: StoreError.self) { try Store(path: link).close() }
        #expect(error?.code == .corrupt)
        #expect(error?.message.contains("does not belong to it") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path("store.db"))) == before)
    }

    @Test func theWatcherFollowsASymbolicLink() throws {
        let folder = try TemporaryFolder()
        let links = try TemporaryFolder()
        let store = try Store.create(path: folder.path("s.db"))
        defer { try? store.close() }
        let link = links.path("s.db")
        #expect(symlink(folder.path("s.db"), link) == 0)
        let watcher = try WALWatcher(store: link)
        try store.database.write { try $0.execute(sql: "CREATE TABLE t(x)") }
        let reported = DispatchSemaphore(value: 0)
        let thread = Thread { watcher.run { reported.signal() } }
        thread.start()
        defer { watcher.stop() }
        #expect(reported.wait(timeout: .now() + 10) == .success)
    }
}
