import Dispatch
import Foundation
import Glibc
import GRDB
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletStore

/// When the write-ahead log comes back into the file, and who brings it there.
@Suite struct CheckpointerTests {
    private let folder: TemporaryFolder
    private let store: Store
    private var path: String { folder.path("store.db") }

    init() throws {
        folder = try TemporaryFolder()
        var configuration = StoreConfiguration()
        configuration.walAutocheckpointPages = 20
        store = try Store.create(path: folder.path("store.db"), configuration: configuration)
        try store.write { try $0.execute(sql: "CREATE TABLE item(id INTEGER PRIMARY KEY, data)") }
        // The log is empty, and the table in the file.
        try ForeignProgram.shell.run("PRAGMA wal_checkpoint(TRUNCATE)", on: path)
    }

    /// Inserts one row that takes so many pages of 4 KiB, and a few more.
    private func insert(pages: Int) throws {
        try store.write { try $0.execute(sql: "INSERT INTO item(data) VALUES (zeroblob(4096 * \(pages)))") }
    }

    /// How many rows the file has without its log.
    private func rowsInFile() throws -> String {
        try ForeignProgram.query("SELECT count(*) FROM item", onFileAlone: path)
    }

    private func pagesOfLog() throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path + "-wal")
        return ((attributes[.size] as? Int ?? 0) - 32) / (4096 + 24)
    }

    @Test func aCommitDecidesByWhatTheLogHas() {
        let step = Checkpointer.step(pages:copied:limit:isCopying:)
        #expect(step(1000, 0, 1000, false) == .aside)
        #expect(step(1400, 0, 1000, true) == .none)
        #expect(step(1400, 1000, 1000, false) == .aside)
        #expect(step(1400, 1275, 1000, false) == .now)
        #expect(step(7999, 0, 1000, false) == .aside)
        #expect(step(8000, 0, 1000, false) == .now)
        #expect(step(8000, 0, 1000, true) == .now)
        #expect(step(10_100, 9000, 10_000, false) == .now)
        #expect(step(19_999, 10_000, 10_000, true) == .none)
        #expect([20, 1000, 2000, 10_000].map(Checkpointer.ceiling) == [160, 8000, 10_000, 20_000])
    }

    @Test func aLongLogIsCopiedAside() throws {
        try insert(pages: 5)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "0")
        try insert(pages: 40)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "2")
        // All of it was copied: the log begins anew.
        try insert(pages: 5)
        #expect(try pagesOfLog() < 60)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "2")
        // As long as before, and not taken for what was copied of the former log.
        try insert(pages: 40)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "4")
    }

    @Test func theLogDoesNotGrowWithoutEnd() throws {
        for _ in 0..<300 { try insert(pages: 5) }
        #expect(try pagesOfLog() < 160 + 20)
        #expect(
            try ForeignProgram.shell.run("PRAGMA integrity_check; SELECT count(*) FROM item", on: path) == "ok\n300\n")
    }

    @Test func whatAReaderStillReadsStaysInTheLog() throws {
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
        // After the first of them it has begun anew.
        #expect(try pagesOfLog() < length + 20)
        #expect(
            try ForeignProgram.shell.run("PRAGMA integrity_check; SELECT count(*) FROM item", on: path) == "ok\n80\n")
    }

    @Test func aStoreLeavesTheLogToAnAgent() throws {
        let lock = open(AgentLock.file(path), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        #expect(AgentLock.take(lock))
        try insert(pages: 60)
        try insert(pages: 60)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "0")
        // The agent does nothing about it.
        try insert(pages: 60)
        #expect(try rowsInFile() == "3")
        try insert(pages: 60)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "3")
        // There is none any more.
        close(lock)
        try insert(pages: 5)
        store.checkpointer.wait()
        #expect(try rowsInFile() == "5")
    }

    @Test func nothingIsCopiedWhereThatIsSwitchedOff() throws {
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
    @Test func closingWaitsForWhatIsBeingCopied() throws {
        for _ in 0..<20 { try insert(pages: 5) }
        try store.close()
        let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
            .compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
        #expect(!files.contains { $0.hasPrefix(path) })
        #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
        #expect(try rowsInFile() == "20")
    }

    /// The connection may outlive the store that it was made for.
    @Test func aConnectionThatIsKeptStillHasItsLogCopied() throws {
        var other: Store? = try Store(path: path, configuration: store.configuration)
        let kept = try #require(other?.database)
        other = nil
        for _ in 0..<100 {
            try kept.write { try $0.execute(sql: "INSERT INTO item(data) VALUES (zeroblob(4096 * 5))") }
        }
        #expect(try pagesOfLog() < 160 + 20)
        try kept.close()
    }

    @Test func anAgentIsNotKeptOffByThoseWhoLookForOne() {
        let path = path
        @Sendable func lock() -> Int32 { open(AgentLock.file(path), O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
        close(lock())
        let isOver = Atomic(false)
        DispatchQueue.concurrentPerform(iterations: 2) { number in
            guard number == 0 else {
                while !isOver.load(ordering: .relaxed) { _ = AgentLock.isTaken(path) }
                return
            }
            defer { isOver.store(true, ordering: .relaxed) }
            for _ in 0..<2000 {
                let descriptor = lock()
                defer { close(descriptor) }
                guard AgentLock.take(descriptor) else {
                    Issue.record("The lock was not to be had.")
                    return
                }
            }
        }
    }
}
