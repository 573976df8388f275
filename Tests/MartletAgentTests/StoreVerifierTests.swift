import Foundation
import GRDB
import MartletAgent
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The output and the repairs of `martlet verify`.
@Suite(.timeLimit(.minutes(5))) struct StoreVerifierTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func node(_ name: String, on bus: InMemoryBus) throws -> TestNode {
        try TestNode(
            name, bus: bus, directory: directory,
            schema: "CREATE TABLE item(key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID")
    }

    /// Two converged stores, one of which is damaged afterwards.
    private func two() throws -> (TestNode, TestNode) {
        let bus = InMemoryBus(topic: "t")
        let a = try node("a", on: bus)
        let b = try node("b", on: bus)
        try a.write("INSERT INTO item VALUES ('k', 1), ('l', 2)")
        try exchange([a, b])
        for node in [a, b] { #expect(try StoreVerifier.examine(node.path).findings.allSatisfy { $0.level == .ok }) }
        let queue = try Connection.open(path: b.path, configuration: .init(), role: .applier)
        try queue.write { try $0.execute(sql: "UPDATE item SET value = 'bad' WHERE key = 'k'") }
        try queue.close()
        return (a, b)
    }

    @Test func repairFailsWhileAnAgentRuns() throws {
        let (a, b) = try two()
        let lock = try StoreLock(store: b.path)
        let error = #expect(throws: StoreError.self) { try StoreVerifier.repair([a.path, b.path]) }
        #expect(error?.code == .locked)
        withExtendedLifetime(lock) {}
        #expect(try !StoreComparison.compare([a.path, b.path]).isSound)
    }

    @Test func repairedStoresConvergeAndRecordTheDivergence() throws {
        let (a, b) = try two()
        #expect(try StoreVerifier.repair([a.path, b.path]).map(\.repairedCount) == [0, 1])
        #expect(try StoreComparison.compare([a.path, b.path]).isSound)
        #expect(try b.rows("SELECT value FROM item WHERE key = 'k'") == ["1"])
        let findings = try StoreVerifier.examine(b.path).findings
        #expect(findings.filter { $0.level != .ok }.map(\.check) == ["checks"])
    }

    @Test func vanishedRowsAreReportedAsAProblem() throws {
        let (_, b) = try two()
        let queue = try Connection.open(path: b.path, configuration: .init(), role: .applier)
        try queue.write { try $0.execute(sql: "DELETE FROM item") }
        try queue.close()
        let problem = try #require(StoreVerifier.examine(b.path).findings.first { $0.level == .problem })
        #expect(problem.check == "vanished" && problem.message.contains("item 2") && problem.remedy != nil)
    }

    /// Runs `martlet verify`.
    private func run(_ arguments: String...) throws -> (code: Int32, output: String) {
        try MartletCommand.run(["verify"] + arguments)
    }

    @Test(.enabled(if: MartletCommand.isBuilt, "the command is not built"))
    func theCommandReportsAndRepairsADivergence() throws {
        let (a, b) = try two()
        #expect(try run(a.path).code == 0)
        let found = try run(a.path, b.path)
        #expect(found.code == 1)
        for text in ["item: 2 / 2 rows, 1 divergent", "divergent   item.value \"k\"", "a: 1, set ", "b: \"bad\", set "]
        {
            #expect(found.output.contains(text), "\(text) is not in \(found.output)")
        }
        let json = try run(a.path, b.path, "--json")
        let last = try #require(json.output.split(separator: "\n").last)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
        #expect(object["sound"] as? Bool == false && (object["differences"] as? [Any])?.count == 1)
        let repaired = try run(a.path, b.path, "--repair")
        #expect(repaired.code == 0 && repaired.output.contains("Nothing is divergent any more."), "\(repaired.output)")
        #expect(try run(a.path, b.path).code == 0)
        #expect(try run(b.path).output.contains("otherValue, mended, with a"))
        #expect(try run(b.path, "--forget").code == 0)
        #expect(try !run(b.path).output.contains("otherValue"))
        #expect(try run().code == 64 && run(a.path, "--mend").code == 64)
        #expect(try run(directory.path("none")).code == 1)
    }

    /// An agent would delete these rows on all nodes at its next start.
    @Test(.enabled(if: MartletCommand.isBuilt, "the command is not built"))
    func theCommandRestoresRowsThatVanished() throws {
        let (a, b) = try two()
        let queue = try Connection.open(path: b.path, configuration: .init(), role: .applier)
        try queue.write { try $0.execute(sql: "DELETE FROM item") }
        try queue.close()
        let repaired = try run(a.path, b.path, "--repair")
        #expect(repaired.code == 0 && repaired.output.contains("Nothing is divergent any more."), "\(repaired.output)")
        #expect(try b.rows("SELECT key, value FROM item ORDER BY key") == ["k|1", "l|2"])
        #expect(try StoreVerifier.examine(b.path).soundness.isSound)
    }
}
