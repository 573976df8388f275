import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Stores and engines that are closed while other threads use them.
@Suite(.timeLimit(.minutes(5))) struct ClosingTests {
    /// Closing waits for the current transaction, and admits no further one: SQLite closes no connection on which a
    /// statement was compiled meanwhile.
    @Test func anEngineClosesInTheMiddleOfTransactions() throws {
        let lab = try Lab()
        for round in 0..<40 {
            let node = try lab.node("n\(round)")
            try node.write("INSERT INTO setting VALUES ('k', 0)")
            let engine = node.engine
            try use(until: { try engine.session.transaction { _, _ in } }, close: { try engine.close() })
        }
    }

    @Test func aStoreClosesInTheMiddleOfTransactions() throws {
        for _ in 0..<40 {
            let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
            let store = temporary.store
            try use(
                until: { try store.write { try $0.execute(sql: "INSERT INTO item(v) VALUES (1)") } },
                close: { try store.close() })
        }
    }

    /// Two threads work until their work fails, and this thread closes the store or engine meanwhile.
    private func use(until work: @escaping @Sendable () throws -> Void, close: () throws -> Void) throws {
        let (working, ended) = (DispatchSemaphore(value: 0), DispatchGroup())
        for _ in 0..<2 {
            ended.enter()
            Thread {
                do {
                    while true {
                        try work()
                        working.signal()
                    }
                } catch {
                    #expect((error as? StoreError)?.code == .sqlite, "\(error)")
                }
                ended.leave()
            }.start()
        }
        for _ in 0..<4 { #expect(working.wait(timeout: .now() + 30) == .success) }
        try close()
        #expect(ended.wait(timeout: .now() + 30) == .success)
    }
}
