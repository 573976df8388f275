import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Statements are compiled once: SQLite recompiles none of those that a node runs regularly.
@Suite struct CompiledStatementTests {
    @Test func readingAndWritingRecompileNoStatement() throws {
        let lab = try Lab()
        let a = try lab.node("a")
        let b = try lab.node("b")
        func work(_ round: Int) throws {
            try a.write("INSERT INTO trip(name) VALUES ('\(round)'); INSERT INTO setting VALUES (\(round), 1)")
            try exchange([a, b])
            try b.write("UPDATE trip SET budget = \(round); UPDATE setting SET value = \(round)")
            try exchange([a, b])
            let token = try a.store.lastToken()
            _ = try a.store.fetchHistory(HistoryQuery(after: token))
        }
        for round in 1...3 { try work(round) }
        let connections = [a.store.database, a.engine.session.database, b.engine.session.database]
        let before = connections.map { $0.inDatabase(\.recompilations) }
        #expect(before.allSatisfy { $0.statements > 3 })
        for round in 4...6 { try work(round) }
        let after = connections.map { $0.inDatabase(\.recompilations) }
        #expect(after.map(\.count) == before.map(\.count))
    }
}
