import Foundation
import Glibc
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// When the write-ahead log is copied into the file, and which thread or process copies it.
@Suite struct CheckpointerTests {
    private let folder: TemporaryFolder
    private let store: Store
    private var path: String { folder.path("store.db") }

    init() throws {
        folder = try TemporaryFolder()
        // Creating a store fills a log of 20 pages, and would open the second connection.
        try Store.create(path: folder.path("store.db")).close()
        var configuration = StoreConfiguration()
        configuration.walAutocheckpointPages = 20
        store = try Store(path: folder.path("store.db"), configuration: configuration)
        try store.write { try $0.execute(sql: "CREATE TABLE item(id INTEGER PRIMARY KEY, data)") }
        store.checkpointer.wait()
        // The log is empty, and the table is in the file.
        #expect(try ForeignProgram.shell.run("PRAGMA wal_checkpoint(TRUNCATE)", on: path).hasPrefix("0|"))
    }

    /// Inserts one row that takes at least `pages` pages of 4 KiB.
    private func insert(pages: Int) throws {
        try store.write { try $0.execute(sql: "INSERT INTO item(data) VALUES (zeroblob(4096 * \(pages)))") }
    }

    /// The number of rows in the file without its log.
    private func rowsInFile() throws -> String {
        try ForeignProgram.query("SELECT count(*) FROM item", onFileAlone: path)
    }

    private func pagesOfLog() throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path + "-wal")
        return ((attributes[.size] as? Int ?? 0) - 32) / (4096 + 24)
    }

    @Test func aCommitDecidesByTheLengthOfTheLog() {
        func step(_ pages: Int, copied: Int, of limit: Int, isHeld: Bool = false, isCopying: Bool = false)
            -> Checkpointer.Step
        {
            let log = Checkpointer.Log(generation: 3, pages: pages, copied: copied, isHeld: isHeld)
            return Checkpointer.step(limit: limit, log, isCopying: isCopying)
        }
        #expect(step(1000, copied: 0, of: 1000) == .aside)
        #expect(step(1400, copied: 0, of: 1000, isCopying: true) == .none)
        #expect(step(1400, copied: 1000, of: 1000) == .aside)
        #expect(step(1400, copied: 1275, of: 1000) == .now)
        #expect(step(1400, copied: 1275, of: 1000, isCopying: true) == .now)
        #expect(step(1400, copied: 1275, of: 1000, isHeld: true) == .aside)
        #expect(step(7999, copied: 0, of: 1000) == .aside)
        #expect(step(8000, copied: 0, of: 1000) == .now)
        #expect(step(8000, copied: 7990, of: 1000, isHeld: true, isCopying: true) == .now)
        #expect(step(10_100, copied: 9000, of: 10_000) == .now)
        #expect(step(19_999, copied: 10_000, of: 10_000, isCopying: true) == .none)
        #expect([20, 1000, 2000, 10_000].map(Checkpointer.ceiling) == [160, 8000, 10_000, 20_000])
    }

    /// The number of descriptors of the file in this process.
    private func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
        }
    }

    @Test func anotherConnectionCopiesALongLog() throws {
        try insert(pages: 5)
        #expect(try descriptors() == 1)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "0")
        try insert(pages: 40)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "2")
        // Another connection copied it.
        #expect(try descriptors() == 2)
        // The whole log is copied: the next commit starts it again.
        try insert(pages: 5)
        #expect(try pagesOfLog() < 60)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "2")
        // The log is as long as before, and isn't mistaken for the copied part of the former one.
        try insert(pages: 40)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "4")
    }

    /// The checkpointer also copies commits that arrive during a copy. Opening a store examines a log that is older
    /// than the file and holds pages that the file lacks.
    @Test func theCheckpointerCopiesTheWholeLogAtLast() throws {
        for round in 1...10 {
            // Each insert exceeds the limit, so that one that restarts the log is copied, too.
            for _ in 0..<4 { try insert(pages: 25) }
            store.checkpointer.wait()
            #expect(StaleLog.isApplied(path + "-wal", to: path), "round \(round)")
        }
    }

    @Test func theLogStaysBounded() throws {
        for _ in 0..<300 { try insert(pages: 5) }
        #expect(try pagesOfLog() < 160 + 20)
        #expect(
            try ForeignProgram.shell.run("PRAGMA integrity_check; SELECT count(*) FROM item", on: path) == "ok\n300\n")
    }

    @Test func theLogKeepsPagesThatAReaderNeeds() throws {
        let reader = try DatabaseQueue(path: path)
        try reader.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN")
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM item") == 0)
            for _ in 0..<60 { try insert(pages: 5) }
            #expect(try pagesOfLog() >= 300)
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM item") == 0)
            try db.execute(sql: "COMMIT")
        }
        let length = try pagesOfLog()
        for _ in 0..<20 { try insert(pages: 5) }
        // The first insert restarted the log.
        #expect(try pagesOfLog() < length + 20)
        #expect(
            try ForeignProgram.shell.run("PRAGMA integrity_check; SELECT count(*) FROM item", on: path) == "ok\n80\n")
    }

    @Test func aStoreLeavesTheLogToAnAgent() throws {
        let lock = open(AgentLock.file(path), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        #expect(AgentLock.take(lock))
        try insert(pages: 50)
        try insert(pages: 50)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "0")
        // The agent copies nothing. Nor does the commit: the log is below its ceiling.
        try insert(pages: 20)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "3")
        #expect(try descriptors() == 2)
        try insert(pages: 60)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "3")
        // The agent is gone.
        AgentLock.release(lock)
        try insert(pages: 5)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "5")
    }

    @Test func aStoreWithoutCheckpointsCopiesNothing() throws {
        try store.close()
        var configuration = StoreConfiguration()
        configuration.walAutocheckpointPages = 0
        let store = try Store(path: path, configuration: configuration)
        for _ in 0..<10 {
            try store.write { try $0.execute(sql: "INSERT INTO item(data) VALUES (zeroblob(4096 * 40))") }
        }
        store.checkpointer.wait()
        #expect(try rowsInFile() == "0")
        #expect(try pagesOfLog() >= 400)
        try store.close()
    }

    /// A closed store has no connection left.
    @Test func closingWaitsForARunningCopy() throws {
        for _ in 0..<20 { try insert(pages: 5) }
        try store.close()
        #expect(try descriptors() == 0)
        #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
        #expect(try rowsInFile() == "20")
    }

    /// The connection may outlive its store.
    @Test func commitsOnAKeptConnectionStillCopyTheLog() throws {
        var other: Store? = try Store(path: path, configuration: store.configuration)
        let kept = try #require(other?.database)
        other = nil
        for _ in 0..<100 {
            try kept.write { try $0.execute(sql: "INSERT INTO item(data) VALUES (zeroblob(4096 * 5))") }
        }
        #expect(try pagesOfLog() < 160 + 20)
        try kept.close()
    }

    @Test func anAgentTakesTheLockDespiteOthersLookingForIt() {
        func lock() -> Int32 { open(AgentLock.file(path), O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
        let (agent, other) = (lock(), lock())
        // Another process looks for an agent, and takes a while.
        #expect(flock(other, LOCK_SH | LOCK_NB) == 0)
        var attempts: [Int] = []
        #expect(
            AgentLock.take(agent) { attempt in
                attempts.append(attempt)
                if attempt == 2 { flock(other, LOCK_UN) }
            })
        #expect(attempts == [0, 1, 2])
        #expect(AgentLock.isTaken(path))
        #expect(!AgentLock.take(other) { _ in Issue.record("The lock is not shared.") })
        AgentLock.release(agent)
        #expect(!AgentLock.isTaken(path))
        #expect(AgentLock.take(other))
        AgentLock.release(other)
    }

    @Test func aSymbolicLinkLeadsToTheAgentsLock() throws {
        let link = folder.path("link.db")
        #expect(symlink(path, link) == 0)
        let lock = open(AgentLock.file(path), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { AgentLock.release(lock) }
        #expect(AgentLock.take(lock))
        #expect(AgentLock.isTaken(link))
        #expect(AgentLock.file(folder.path("none.db")) == folder.path("none.db.lock"))
    }

    /// The log doesn't belong to the file that replaced the store.
    @Test func theCheckpointerLeavesAReplacedFileAlone() throws {
        try insert(pages: 1)
        let other = folder.path("other.db")
        try ForeignProgram.shell.run(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, data); INSERT INTO item(data) VALUES (1), (2), (3)", on: other)
        let before = try Data(contentsOf: URL(fileURLWithPath: other))
        #expect(rename(other, path) == 0)
        for _ in 0..<20 { try insert(pages: 5) }
        try store.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test func theCheckpointerDoesNotRecreateADeletedFile() throws {
        try insert(pages: 1)
        #expect(unlink(path) == 0)
        for _ in 0..<20 { try insert(pages: 5) }
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(try store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM item") } == 21)
    }

    /// No other connection can be opened then, and no commit waits for one.
    @Test func commitsCopyTheLogUnderAnExclusiveLock() throws {
        try store.database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") }
        for count in 1...5 {
            try insert(pages: 40)
            #expect(try rowsInFile() == "\(count)")
        }
    }

    @Test func sqliteCheckpointsAnAttachedDatabase() throws {
        let other = folder.path("other.db")
        try ForeignProgram.shell.run("PRAGMA journal_mode = WAL; CREATE TABLE thing(data)", on: other)
        try store.database.writeWithoutTransaction { db in
            try db.execute(sql: "ATTACH '\(other)' AS other")
            for _ in 0..<40 { try db.execute(sql: "INSERT INTO other.thing VALUES (zeroblob(4096 * 30))") }
        }
        let size = try FileManager.default.attributesOfItem(atPath: other + "-wal")[.size] as? Int
        #expect(try #require(size) < 60 * 4120)
        #expect(try ForeignProgram.query("SELECT count(*) >= 39 FROM thing", onFileAlone: other) == "1")
    }
}
