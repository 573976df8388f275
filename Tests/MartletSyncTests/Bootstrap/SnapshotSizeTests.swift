import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

private let rowCount = ProcessInfo.processInfo.environment["MARTLET_SNAPSHOT_ROWS"].flatMap(Int.init) ?? 0

/// What a snapshot of many rows costs. `MARTLET_SNAPSHOT_ROWS=1000000 swift test -c release --filter SnapshotSizeTests`
@Suite struct SnapshotSizeTests {
    @Test(.enabled(if: rowCount > 0)) func manyRowsComeToANewNode() throws {
        let schema = """
            CREATE TABLE item(id BLOB PRIMARY KEY NOT NULL, title TEXT, amount INTEGER, price REAL) WITHOUT ROWID;
            CREATE TABLE event(id INTEGER PRIMARY KEY, title TEXT, at INTEGER, note TEXT);
            """
        let directory = try TemporaryDirectory()
        let bus = InMemoryBus(topic: "t")
        let snapshots = InMemoryBus(topic: "t.snapshot")
        let a = try TestNode("a", bus: bus, directory: directory, schema: schema)
        let half = rowCount / 2
        try a.write(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(half))
            INSERT INTO item SELECT randomblob(16), 'title ' || i, i, i / 3.0 FROM n;
            """)
        try a.write(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(half))
            INSERT INTO event(title, at, note) SELECT 'event ' || i, i * 1000, 'a note of some length, number ' || i FROM n;
            """)
        _ = try a.engine.retainHistory(age: nil, sizeBytes: nil)
        bus.wipe()
        let make = SnapshotTopic(engine: a.engine, bus: snapshots, topic: "t")
        // Registers all rows, which would have been done long ago.
        a.publisher.step()
        let begin = ContinuousClock.now
        let before = Self.residentMegabytes
        let info = try make.make()
        let made = ContinuousClock.now
        let after = Self.residentMegabytes
        let b = try TestNode("b", bus: bus, directory: directory, schema: schema)
        let load = SnapshotTopic(engine: b.engine, bus: snapshots, topic: "t")
        var highest = 0
        let loading = ContinuousClock.now
        let progress = try load.load(partitionCount: 1) { _ in
            highest = max(highest, Self.residentMegabytes)
            return true
        }
        let loaded = ContinuousClock.now
        let copy = directory.path("copy.sqlite")
        try FileManager.default.copyItem(atPath: a.path, toPath: copy)
        let copied = ContinuousClock.now
        print(
            """
            \(rowCount) rows: made in \(made - begin), loaded in \(loaded - loading), file copied in \(copied - loaded)
            \(info.byteCount >> 20) MB in \(info.messageCount) messages, held by the bus in memory
            resident: \(before) MB before, \(after) MB after making, \(highest) MB at most while loading
            """)
        #expect(progress?.rows == half * 2)
        #expect(try b.rows("SELECT count(*) FROM item") == ["\(half)"])
    }

    private static var residentMegabytes: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return (Int(line.filter(\.isNumber)) ?? 0) / 1024
    }
}
