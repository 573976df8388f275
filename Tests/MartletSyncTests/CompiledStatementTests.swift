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
        let connections = [a.store.database, a.engine.session.database, b.engine.session.database]
        func look() -> [KeptStatements] { connections.map { $0.inDatabase { KeptStatements($0) } } }
        for round in 1...2 { try work(round) }
        let first = look()
        try work(3)
        let before = look()
        for round in 4...6 { try work(round) }
        for (index, after) in look().enumerated() {
            let regular = before[index].run(since: first[index])
            #expect(regular.count > 3)
            #expect(after.recompiled(since: before[index]).intersection(regular) == [])
        }
    }
}
