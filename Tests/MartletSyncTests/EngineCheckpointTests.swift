import GRDB
import Glibc
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Which connection checkpoints the write-ahead log while an agent runs.
@Suite struct EngineCheckpointTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path("store.db") }
    private let configuration: StoreConfiguration

    init() throws {
        folder = try TemporaryFolder()
        var configuration = StoreConfiguration()
        configuration.walAutocheckpointPages = 20
        self.configuration = configuration
        try ForeignProgram.shell.run("CREATE TABLE item(id INTEGER PRIMARY KEY, name UNIQUE, data)", on: path)
    }

    private func rowsInFile() throws -> String {
        try ForeignProgram.query("SELECT count(*) FROM item", onFileAlone: path)
    }

    @Test func theEngineCheckpointsWhatStoresLeaveToTheAgent() throws {
        let store = try Store.create(path: path, configuration: configuration)
        _ = try store.attach(.init())
        let engine = try SyncEngine(path: path, store: configuration)
        _ = try engine.session.enqueueSome()
        store.checkpointer.wait()
        engine.session.checkpointer.wait()
        #expect(try ForeignProgram.shell.run("PRAGMA wal_checkpoint(TRUNCATE)", on: path).hasPrefix("0|"))
        // The engine's agent does the same.
        let lock = open(AgentLock.file(path), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { AgentLock.release(lock) }
        #expect(AgentLock.take(lock))
        try store.write { try $0.execute(sql: "INSERT INTO item(name, data) VALUES ('one', zeroblob(4096 * 10))") }
        try store.write { try $0.execute(sql: "INSERT INTO item(name, data) VALUES ('two', zeroblob(4096 * 10))") }
        store.checkpointer.wait()
        engine.session.checkpointer.wait()
        #expect(try rowsInFile() == "0")
        #expect(try !engine.session.enqueueSome().entries.isEmpty)
        engine.session.checkpointer.wait()
        #expect(try rowsInFile() == "2")
        try engine.close()
        try store.close()
    }
}
