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
}
