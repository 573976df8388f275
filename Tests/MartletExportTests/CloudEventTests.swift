import Foundation
import MartletExport
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct CloudEventTests {
    private func headers(_ message: IncomingMessage, _ node: TestNode) -> [String] {
        message.headers.map { header in
            let value = String(decoding: header.value, as: UTF8.self)
            let isTime = header.name == "ce_time" || header.name == "ce_iodebeziumtsms"
            return "\(header.name)=\(isTime ? "TIME" : ExportLab.plain(value, node))"
        }
    }

    @Test func recordsAreCloudEventsIfAsked() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try lab.export(a) { $0.cloudEvents = true }
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.write("DELETE FROM setting")
        try lab.export(a) { $0.cloudEvents = true }
        let messages = try lab.messages("x.setting")
        #expect(messages.count == 3)
        #expect(
            headers(messages[0], a) == [
                "ce_specversion=1.0", "ce_id=NODE:1:1", "ce_source=/debezium/martlet/x",
                "ce_type=io.debezium.connector.martlet.DataChangeEvent", "ce_time=TIME", "ce_subject=setting",
                "content-type=application/json", "ce_iodebeziumop=c", "ce_iodebeziumconnector=martlet",
                "ce_iodebeziumname=x", "ce_iodebeziumtsms=TIME", "ce_iodebeziumtable=setting",
                "ce_iodebeziumtxid=NODE:1", "ce_iodebeziumtxtotalorder=1", "ce_iodebeziumtxdatacollectionorder=1",
            ])
        #expect(messages[2].isNull && messages[2].headers.isEmpty)
    }

    @Test func removedRowsAreCloudEventsToo() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try lab.export(a) { $0.cloudEvents = true }
        // The delete goes unseen.
        try a.store.removeCursor("martlet.export.x")
        try a.write("DELETE FROM setting")
        try a.publish()
        try a.store.deleteHistory(before: .distantFuture)
        try lab.export(a) { $0.cloudEvents = true }
        let names = try lab.messages("x.setting").map { $0.headers.map(\.name) }
        #expect(names.count == 3 && names[1] == names[0] && names[2].isEmpty)
        #expect(names[0].contains("ce_id"))
    }

    @Test func columnsWithOtherBytesAreNamed() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', x'ff'); INSERT INTO trip VALUES (1, CAST(x'ff41' AS TEXT), 1)")
        try lab.export(a)
        for table in ["setting", "trip"] {
            let found = try lab.messages("x.\(table)").map { headers($0, a) }
            let column = table == "trip" ? "name" : "value"
            #expect(
                found == [[#"martlet-types={"after":{"\#(column)":"bytes"}}"#, #"martlet-bytes=["\#(column)"]"#]])
        }
    }
}
