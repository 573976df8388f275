import Foundation
import GRDB
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Which stores an agent regards as copies.
@Suite struct StorePlaceTests {
    let directory: TemporaryDirectory
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = try directory.noteStore("a").path
        _ = try agent(path)
    }

    private func agent(_ path: String, _ policy: CopyPolicy = .refuse) throws -> NodeID {
        var configuration = AgentConfiguration()
        configuration.storePath = path
        configuration.sync.name = "n"
        configuration.kafka.bootstrapServers = ["localhost:1"]
        configuration.whenCopied = policy
        let agent = try Agent(configuration, log: quietLog)
        defer { try? agent.engine.close() }
        return agent.engine.node
    }

    /// Copies or moves all files of the store to another name.
    private func copies(_ name: String, moves: Bool = false) throws -> String {
        let target = directory.path(name)
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
            try moves
                ? FileManager.default.moveItem(atPath: path + suffix, toPath: target + suffix)
                : FileManager.default.copyItem(atPath: path + suffix, toPath: target + suffix)
        }
        return target
    }

    @Test func p31AnAgentRefusesACopyUntilItIsForked() throws {
        let original = try agent(path)
        let copy = try copies("copy.sqlite")
        for _ in 0..<2 {
            let error = #expect(throws: StoreError.self) { try agent(copy) }
            #expect(error?.code == .copied)
            #expect(error?.message.contains(path) == true)
            #expect(error?.hint.contains("martlet fork \(copy)") == true)
        }
        try Store(path: copy).write {
            try $0.execute(sql: "INSERT INTO note(text) VALUES ('a'), ('b'); DELETE FROM note WHERE text = 'b'")
        }
        let report = try StoreMaintenance.fork(store: copy)
        #expect(report.former == original && report.republished == 0)
        #expect(report.unstamped == 3, "changes of a program that no agent has taken up")
        #expect(try agent(copy) == report.node)
        #expect(try agent(path) == original)
    }

    @Test func p31ACopyForksAutomaticallyIfConfigured() throws {
        let original = try agent(path)
        let copy = try copies("copy.sqlite")
        let node = try agent(copy, .fork)
        #expect(node != original)
        #expect(try agent(copy, .fork) == node)
    }

    @Test func aMovedStoreKeepsItsNode() throws {
        let original = try agent(path)
        let moved = try copies("moved.sqlite", moves: true)
        #expect(try agent(moved) == original)
    }

    @Test func aStoreRewrittenInPlaceKeepsItsNode() throws {
        let original = try agent(path)
        let other = try copies("other.sqlite")
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
            try FileManager.default.removeItem(atPath: path + suffix)
        }
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: other + suffix) {
            try FileManager.default.copyItem(atPath: other + suffix, toPath: path + suffix)
        }
        #expect(try agent(path) == original)
    }

    @Test func forkingTheOriginalLetsTheCopyContinue() throws {
        let original = try agent(path)
        let copy = try copies("copy.sqlite")
        _ = try StoreMaintenance.fork(store: path)
        #expect(try agent(copy) == original)
    }

    @Test func twoOfThreePropertiesIdentifyAPlace() throws {
        let here = StorePlace(machine: "m", path: path, inode: 7)
        let identifier = try Store(path: path).identifier
        func isCopy(_ machine: String, _ path: String, _ inode: UInt64) -> Bool {
            here.isCopy(of: StorePlace(machine: machine, path: path, inode: inode), store: identifier)
        }
        let gone = directory.path("gone.sqlite")
        #expect(!isCopy("m", path, 7))
        #expect(!isCopy("other", path, 7), "a container that was recreated")
        #expect(!isCopy("m", path, 8), "a file that was written anew")
        #expect(!isCopy("m", gone, 7), "a move on one disk")
        #expect(!isCopy("m", gone, 8), "a move to another disk")
        #expect(isCopy("other", path, 8), "the same folders on another machine")
        #expect(isCopy("other", gone, 7))
        #expect(isCopy("other", gone, 8))
        #expect(!isCopy("", path, 8), "a machine without a name says nothing")
    }

    @Test func forkFailsForAStoreThatNeverSynced() throws {
        let store = try directory.noteStore("fresh")
        let error = #expect(throws: StoreError.self) { try StoreMaintenance.fork(store: store.path) }
        #expect(error?.code == .invalidArgument)
    }
}
