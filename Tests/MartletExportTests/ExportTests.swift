import Foundation
import MartletExport
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What the topics have after changes of each kind.
@Suite(.timeLimit(.minutes(5))) struct ExportTests {
    private static let source =
        #"{"version":"1.2.3","connector":"martlet","name":"x","ts_ms":TIME,"snapshot":"false","db":"main","#
        + #""table":"setting","sequence":"SEQ","origin":"NODE","origin_name":"a","author":"ann","hlc":HLC}"#

    private func source(_ sequence: Int) -> String {
        Self.source.replacing("SEQ", with: "\(sequence)")
    }

    @Test func anExporterEndsWhenTheStoreIsReplaced() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        let exporter = try lab.exporter(a)
        _ = try exporter.runUntilCaughtUp()
        try StoreReplacement.moveAway(a.path, replacing: true)
        exporter.run()
        #expect(exporter.lastFailure?.code == .moved)
    }

    @Test func eachChangeIsARecordAndADeleteEndsWithANullRecord() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try lab.export(a)
        try a.write("INSERT INTO setting VALUES ('k', 1)", author: "ann")
        try a.write("UPDATE setting SET value = 2; UPDATE setting SET value = 'three'", author: "ann")
        try a.write("DELETE FROM setting", author: "ann")
        #expect(try lab.export(a) == 4)
        let key = #"{"key":"k"} = "#
        func block(_ sequence: Int, _ order: Int) -> String {
            #""transaction":{"id":"NODE:\#(sequence)","total_order":\#(order),"data_collection_order":\#(order)}"#
        }
        #expect(
            try lab.records("x.setting", a) == [
                key + #"{"before":null,"after":{"key":"k","value":1},"source":\#(source(1)),"#
                    + #"\#(block(1, 1)),"op":"c","ts_ms":TIME}"#,
                key + #"{"before":null,"after":{"key":"k","value":2},"source":\#(source(2)),"#
                    + #"\#(block(2, 1)),"op":"u","ts_ms":TIME}"#,
                key + #"{"before":null,"after":{"key":"k","value":"three"},"source":\#(source(2)),"#
                    + #"\#(block(2, 2)),"op":"u","ts_ms":TIME}"#,
                key + #"{"before":{"key":"k","value":null},"after":null,"source":\#(source(3)),"#
                    + #"\#(block(3, 1)),"op":"d","ts_ms":TIME}"#,
                key + "null",
            ])
        func end(_ sequence: Int, _ count: Int) -> String {
            #"{"id":"NODE:\#(sequence)"} = {"status":"END","id":"NODE:\#(sequence)","event_count":\#(count),"#
                + #""data_collections":[{"data_collection":"setting","event_count":\#(count)}],"ts_ms":TIME}"#
        }
        func begin(_ sequence: Int) -> String {
            #"{"id":"NODE:\#(sequence)"} = {"status":"BEGIN","id":"NODE:\#(sequence)","event_count":null,"#
                + #""data_collections":null,"ts_ms":TIME}"#
        }
        #expect(
            try lab.records("x.transaction", a) == [begin(1), end(1, 1), begin(2), end(2, 2), begin(3), end(3, 1)])
    }

    @Test func rowsThatAreThereFirstComeAsReads() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1.5)")
        #expect(try lab.export(a) == 1)
        #expect(
            try lab.records("x.setting", a) == [
                #"{"key":"k"} = {"before":null,"after":{"key":"k","value":1.5},"source":{"version":"1.2.3","#
                    + #""connector":"martlet","name":"x","ts_ms":TIME,"snapshot":"true","db":"main","#
                    + #""table":"setting","sequence":null,"origin":null,"origin_name":null,"author":null,"hlc":HLC},"#
                    + #""transaction":null,"op":"r","ts_ms":TIME}"#
            ])
        #expect(try lab.records("x.transaction", a) == [])
        #expect(try lab.export(a) == 0)
    }

    @Test func rowsWithAssignedIDsAreKeyedByThemAndReferToThem() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try lab.export(a)
        try a.write("INSERT INTO trip VALUES (7, 'Rome', NULL); INSERT INTO stop VALUES (1, 7, 'Forum')")
        try lab.export(a)
        let tables = try RebuiltTables(lab, ["trip", "stop"])
        let trip = try #require(tables.rows["trip"]?.values.first)
        let id = try #require(trip["_martlet_id"] as? String)
        #expect(try lab.messages("x.trip").map(\.key) == [Array(#"{"_martlet_id":"\#(id)"}"#.utf8)])
        #expect(tables.rows["stop"]?.values.first?["trip"] as? String == id)
        try tables.expectEqual(to: a)
    }

    @Test func aChangedKeyIsADeleteAndAnInsert() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try a.write("INSERT INTO pair VALUES ('a', 1, x'00ff')")
        try lab.export(a)
        try a.write("UPDATE pair SET b = 2")
        #expect(try lab.export(a) == 2)
        let changes = try lab.messages("x.pair").dropFirst().map { message in
            "\(String(decoding: message.key, as: UTF8.self)) \(message.isNull ? "null" : op(message))"
        }
        #expect(changes == [#"{"a":"a","b":1} d"#, #"{"a":"a","b":1} null"#, #"{"a":"a","b":2} c"#])
        try RebuiltTables(lab, ["pair"]).expectEqual(to: a)
    }

    private func op(_ message: IncomingMessage) -> String {
        let value = try? JSONSerialization.jsonObject(with: Data(message.payload)) as? [String: Any]
        return value?["op"] as? String ?? "?"
    }

    @Test func keptValuesAreTheRowBeforeAChange() throws {
        let lab = try ExportLab()
        var request = AttachRequest()
        request.keepsOldValues = true
        let a = try lab.node("a", attach: request)
        try a.write("INSERT INTO trip VALUES (1, 'Rome', 10)")
        try lab.export(a)
        try a.write("UPDATE trip SET budget = 20; UPDATE trip SET name = 'Oslo'; DELETE FROM trip")
        try lab.export(a)
        let found = try lab.messages("x.trip").filter { !$0.isNull }.dropFirst().map { message in
            let value = try JSONSerialization.jsonObject(with: Data(message.payload)) as? [String: Any] ?? [:]
            return ["before", "after"].map { side in
                guard let row = value[side] as? [String: Any] else { return "-" }
                return "\(row["name"] ?? "?") \((row["budget"] as? NSNumber)?.intValue ?? -1)"
            }.joined(separator: " > ")
        }
        #expect(found == ["Rome 10 > Rome 20", "Rome 20 > Oslo 20", "Oslo 20 > -"])
    }

    @Test func changesOfOtherNodesNameTheirOrigin() throws {
        let lab = try ExportLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try lab.export(b)
        try a.write("INSERT INTO setting VALUES ('k', 1)", author: "ann")
        try exchange([a, b])
        try lab.export(b)
        let records = try lab.records("x.setting", a)
        #expect(records.count == 1)
        #expect(records[0].contains(#""sequence":"1","origin":"NODE","origin_name":"a","author":"ann""#))
        #expect(records[0].contains(#""transaction":{"id":"NODE:1","total_order":1,"data_collection_order":1}"#))
    }

    @Test func aLargeTransactionComesInPartsThatCountOn() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try lab.export(a)
        let values = (1...25).map { "('k\($0)', \($0))" }.joined(separator: ", ")
        try a.write("INSERT INTO setting VALUES \(values); UPDATE setting SET value = 0 WHERE key = 'k3'")
        try a.write("DELETE FROM setting WHERE key = 'k1'")
        try lab.export(a) { $0.batchChanges = 4 }
        let orders = try lab.messages("x.setting").compactMap { message -> Int? in
            guard !message.isNull else { return nil }
            let value = try JSONSerialization.jsonObject(with: Data(message.payload)) as? [String: Any]
            return ((value?["transaction"] as? [String: Any])?["total_order"] as? NSNumber)?.intValue
        }
        #expect(orders == Array(1...26) + [1])
        let ends = try lab.records("x.transaction", a).filter { $0.contains("END") }
        #expect(ends.count == 2 && ends[0].contains(#""event_count":26"#))
        try RebuiltTables(lab, ["setting"]).expectEqual(to: a)
    }

    @Test func whatFiltersKeepOnTheNodeIsNotExported() throws {
        let lab = try ExportLab(
            """
            CREATE TABLE note(key TEXT PRIMARY KEY NOT NULL, text TEXT, draft TEXT, shared INTEGER);
            CREATE TABLE cache(key TEXT PRIMARY KEY NOT NULL, value);
            """)
        let a = try lab.node("a") {
            $0.filters = SyncFilters()
            $0.filters?.ignoredTables = ["cache"]
            $0.filters?.localColumns = ["note": ["draft"]]
            $0.filters?.publish = ["note": "shared = 1"]
        }
        try a.write("INSERT INTO note VALUES ('before', 'secret', 'd1', 0), ('open', 'text', 'd2', 1)")
        try lab.export(a)
        try a.write("INSERT INTO note VALUES ('later', 'secret', 'd3', 0); INSERT INTO cache VALUES ('c', 1)")
        try a.write("UPDATE note SET draft = 'd4'")
        try lab.export(a)
        #expect(!lab.bus.topicNames.contains("x.cache"))
        #expect(try lab.messages("x.note").map(\.key) == [Array(#"{"key":"open"}"#.utf8)])
        #expect(try !lab.records("x.note", a).contains { $0.contains("d2") || $0.contains("secret") })
        try a.write("UPDATE note SET shared = 1 WHERE key = 'later'")
        try lab.export(a)
        #expect(try RebuiltTables(lab, ["note"]).rows["note"]?.count == 2)
    }

    @Test func whatARowWasBeforeOrAfterItWasPublishedIsNotExported() throws {
        let lab = try ExportLab("CREATE TABLE note(key TEXT PRIMARY KEY NOT NULL, text TEXT, shared INTEGER)")
        var request = AttachRequest()
        request.keepsOldValues = true
        let a = try lab.node("a", attach: request) {
            $0.filters = SyncFilters()
            $0.filters?.publish = ["note": "shared = 1"]
        }
        try lab.export(a)
        try a.write("INSERT INTO note VALUES ('n', 'secret', 0)")
        try a.write("UPDATE note SET text = 'open', shared = 1")
        try a.write("UPDATE note SET text = 'more'")
        try lab.export(a)
        #expect(try RebuiltTables(lab, ["note"]).rows["note"]?.count == 1)
        // It is deleted, and comes back as a row of this node only.
        try a.write("DELETE FROM note")
        try a.write("INSERT INTO note VALUES ('n', 'secret', 0)")
        try lab.export(a)
        #expect(try RebuiltTables(lab, ["note"]).rows["note"]?.isEmpty == true)
        #expect(try !lab.records("x.note", a).contains { $0.contains("secret") })
    }

    @Test func onlyTheGivenTablesAreExported() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1); INSERT INTO trip VALUES (1, 'Rome', 1)")
        try lab.export(a) { $0.tables = ["SETTING"] }
        #expect(lab.bus.topicNames == ["t", "x.export", "x.setting", "x.transaction"])
        // A table that comes later comes with all its rows.
        try lab.export(a)
        try RebuiltTables(lab, ["setting", "trip", "stop", "pair"]).expectEqual(to: a)
    }

    @Test func aTableWithOtherColumnsIsExportedAgain() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1), ('gone', 2)")
        try lab.export(a)
        try a.write("ALTER TABLE setting RENAME COLUMN value TO worth; ALTER TABLE setting ADD COLUMN more DEFAULT 5")
        try lab.export(a)
        try RebuiltTables(lab, ["setting"]).expectEqual(to: a)
        try a.write("ALTER TABLE setting RENAME TO choice")
        try lab.export(a)
        try RebuiltTables(lab, ["choice"]).expectEqual(to: a)
    }

    @Test func anotherFormOfTheKeysRemovesTheOldOnesFirst() throws {
        let lab = try ExportLab()
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try lab.export(a)
        try lab.export(a) { $0.schemas = true }
        let found = try lab.messages("x.setting").map { message in
            let hasSchema = message.key.starts(with: Array(#"{"schema""#.utf8))
            return "\(hasSchema ? "schema" : "plain") \(message.isNull ? "null" : "value")"
        }
        #expect(found == ["plain value", "plain value", "plain null", "schema value"])
        try RebuiltTables(lab, ["setting"]).expectEqual(to: a)
    }
}
