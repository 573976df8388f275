import Foundation
import MartletAgent
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// A store whose agent ran while the clock was ahead.
@Suite(.timeLimit(.minutes(5))) struct RestampTests {
    @Test func p44DoctorNamesStampsInTheFuture() throws {
        let directory = try TemporaryDirectory()
        let clock = TestClock()
        let node = try TestNode(
            "n", bus: InMemoryBus(topic: "t", partitionCount: 1), directory: directory,
            schema: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)", clock: clock)
        func findings() throws -> [Finding] {
            try StoreDoctor.examine(path: node.path).filter { $0.level != .ok && $0.check != "sqlite" }
        }
        try node.write("INSERT INTO note(text) VALUES ('right')")
        try node.publish()
        #expect(try findings().isEmpty)
        clock.milliseconds = SQLiteClock.milliseconds + 40 * 86_400_000
        try node.foreignWrite("INSERT INTO note(text) VALUES ('wrong')", ahead: .seconds(40 * 86_400))
        try node.publish()
        try node.engine.close()
        let found = try findings()
        #expect(found.map(\.check) == ["stamps"])
        #expect(found.first?.message.hasPrefix("1 rows are stamped in the future, up to 20") == true)
        #expect(found.first?.remedy?.contains("martlet restamp \(node.path)") == true)
        let report = try StoreMaintenance.restamp(store: node.path)
        #expect(report.rows == 1 && report.published == 1 && report.replaced == 1)
        #expect(try findings().isEmpty)
        #expect(try StoreMaintenance.restamp(store: node.path) == RestampReport())
    }

    /// Others may read the topic too, and know one format.
    @Test(.enabled(if: MartletCommand.isBuilt, "the command is not built"))
    func theCommandPublishesInTheFormatOfTheAgent() throws {
        let directory = try TemporaryDirectory()
        let clock = TestClock(SQLiteClock.milliseconds + 40 * 86_400_000)
        let node = try TestNode(
            "n", bus: InMemoryBus(topic: "t", partitionCount: 1), directory: directory,
            schema: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)", clock: clock
        ) { $0.encoding = .json }
        try node.foreignWrite("INSERT INTO note(text) VALUES ('wrong')", ahead: .seconds(40 * 86_400))
        try node.publish()
        try node.engine.close()
        let file = directory.path("martlet.yaml")
        try Data("sync:\n  format: json\n".utf8).write(to: URL(fileURLWithPath: file))
        let restamped = try MartletCommand.run(["restamp", node.path, "--config", file])
        #expect(restamped.code == 0, "\(restamped.output)")
        let entries = try node.outbox().filter { !$0.isReplaced }
        let payloads = try node.store.read { db in try entries.map { try $0.payload(db) } }
        #expect(payloads.map(\.first) == [UInt8(ascii: "{")])
    }
}
