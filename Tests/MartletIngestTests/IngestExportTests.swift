import Foundation
import MartletBus
import MartletExport
import MartletIngest
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What comes from another system does not go back.
@Suite(.timeLimit(.minutes(5))) struct IngestExportTests {
    private let lab: IngestLab
    private let source: SourceTopic

    init() throws {
        lab = try IngestLab()
        source = lab.topic()
    }

    private func exporter(_ node: TestNode, batch: Int = 1000, ingested: Bool = false) throws -> Exporter {
        try lab.exporter(node, batch: batch, ingested: ingested)
    }

    /// The records of the table's topic, as their operation, ID and name.
    private func records() throws -> [String] {
        try lab.exported().map { "\($0.operation) \($0.key["id"] ?? "") \($0.row?["name"] as? String ?? "")" }
    }

    private func row(_ id: Int, _ name: String) -> String { #"{"id":\#(id),"name":"\#(name)","stock":1}"# }

    private func send(_ operation: String, _ id: Int, _ name: String, before: String? = nil) throws {
        try source.send(
            operation, key: #"{"id":\#(id)}"#, before: before.map { row(id, $0) }, after: row(id, name))
    }

    /// The node that ingests, and another one.
    @Test(arguments: [0, 1]) func ingestedRowsAreNotExported(exporting: Int) throws {
        let nodes = [try lab.node("a"), try lab.node("b")]
        for id in 1...3 { try send("r", id, "source") }
        try lab.ingest(nodes[0])
        try exchange(nodes)
        // The rows that are there, and what follows.
        let exporter = try exporter(nodes[exporting])
        _ = try exporter.runUntilCaughtUp()
        try send("u", 1, "again", before: "source")
        try source.sendDelete(key: #"{"id":3}"#, before: row(3, "source"))
        try lab.ingest(nodes[0])
        try exchange(nodes)
        _ = try self.exporter(nodes[exporting]).runUntilCaughtUp()
        #expect(try records() == [])
        try nodes[1].write("UPDATE product SET stock = 7 WHERE id = 2; INSERT INTO product VALUES (9, 'own', 1, 1)")
        try exchange(nodes)
        _ = try self.exporter(nodes[exporting]).runUntilCaughtUp()
        #expect(try records() == ["u 2 source", "c 9 own"])
    }

    @Test func rowsThatADeviceHasChangedAreExportedFromTheStart() throws {
        let a = try lab.node("a")
        for id in 1...2 { try send("r", id, "source") }
        try lab.ingest(a)
        try a.write("UPDATE product SET stock = 7 WHERE id = 2")
        _ = try exporter(a).runUntilCaughtUp()
        #expect(try records() == ["r 2 source"])
    }

    /// The source has newer values by then: an older one must not follow them.
    @Test(arguments: [1, 1000]) func aRecordOfARowThatTheSourceHasChangedHasTheRowAsItIs(batch: Int) throws {
        let a = try lab.node("a")
        try send("c", 1, "source")
        try send("c", 2, "source")
        try send("c", 3, "source")
        try lab.ingest(a)
        _ = try exporter(a).runUntilCaughtUp()
        try a.write("UPDATE product SET name = 'device', stock = 5 WHERE id IN (1, 2)")
        try a.write("DELETE FROM product WHERE id = 3")
        try send("u", 1, "newer", before: "source")
        try source.sendDelete(key: #"{"id":2}"#, before: row(2, "source"))
        try send("c", 3, "newer")
        try lab.ingest(a)
        _ = try exporter(a, batch: batch).runUntilCaughtUp()
        // The third row is the source's by now.
        #expect(try records() == ["u 1 newer"])
    }

    /// For a writer into the source, which would otherwise never learn of the merged row.
    @Test func ingestedRowsCanBeExportedToo() throws {
        let a = try lab.node("a")
        try send("c", 1, "source")
        try lab.ingest(a)
        _ = try exporter(a, ingested: true).runUntilCaughtUp()
        try send("u", 1, "newer", before: "source")
        try lab.ingest(a)
        _ = try exporter(a, ingested: true).runUntilCaughtUp()
        try source.sendDelete(key: #"{"id":1}"#, before: row(1, "newer"))
        try lab.ingest(a)
        _ = try exporter(a, ingested: true).runUntilCaughtUp()
        #expect(try records() == ["r 1 source", "u 1 newer", "d 1 "])
    }

    @Test func rowsThatOnlyTheSourceHasKeepTheirRecords() throws {
        let a = try lab.node("a")
        try send("c", 1, "source")
        try lab.ingest(a)
        try a.write("UPDATE product SET name = 'device'")
        _ = try exporter(a).runUntilCaughtUp()
        // Nothing of the row is from a device any more. It is not gone, either.
        try source.send("c", key: #"{"id":1}"#, after: #"{"id":1,"name":"source","price":1,"stock":2}"#)
        try lab.ingest(a)
        let exporter = try exporter(a)
        try exporter.forgetPosition()
        _ = try exporter.runUntilCaughtUp()
        #expect(try records() == ["r 1 device"])
    }

    /// Without its delete, the null record would name another row.
    @Test func theNullRecordAfterADeleteDeletesNoOtherRow() throws {
        let lab = try IngestLab("CREATE TABLE visit(at DATETIME PRIMARY KEY NOT NULL, n INTEGER)")
        let node = try lab.node("a", identities: [:])
        let source = lab.topic("x.visit")
        func send(_ operation: String, key: String, _ row: String) throws {
            try source.send(
                key,
                #"{"before":\#(operation == "d" ? row : "null"),"after":\#(operation == "d" ? "null" : row),"#
                    + #""source":{"connector":"martlet","ts_ms":\#(SQLiteClock.milliseconds)},"op":"\#(operation)"}"#)
        }
        let key = #"{"at":"2024-01-01T10:00:00Z"}"#
        try send("c", key: key, #"{"at":"2024-01-01T10:00:00Z","n":1}"#)
        try send("c", key: #"{"at":1704103200000}"#, #"{"at":1704103200000,"n":2}"#)
        let mapping = [TableMapping(topic: "x.visit", table: "visit")]
        try lab.ingest(node, mapping)
        #expect(try node.rows("SELECT * FROM visit ORDER BY n") == ["2024-01-01T10:00:00Z|1", "2024-01-01 10:00:00|2"])
        try send("d", key: key, key)
        try source.send(key, nil)
        try lab.ingest(node, mapping)
        #expect(try node.rows("SELECT * FROM visit") == ["2024-01-01 10:00:00|2"])
    }
}
