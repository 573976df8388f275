import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Tables as a consumer has them that knows nothing but the topics: the newest record of each key.
struct RebuiltTables {
    private(set) var rows: [String: [[UInt8]: [String: Any]]] = [:]

    /// - Parameter tables: names whose topics are `x.<table>`.
    init(_ lab: ExportLab, _ tables: [String]) throws {
        for table in tables {
            rows[table] = [:]
            for message in try lab.messages("x.\(table)") {
                guard !message.isNull else {
                    rows[table]?[message.key] = nil
                    continue
                }
                let value = try JSONSerialization.jsonObject(with: Data(message.payload)) as? [String: Any] ?? [:]
                let record = value["payload"] as? [String: Any] ?? value
                if record["op"] as? String == "d" {
                    rows[table]?[message.key] = nil
                } else {
                    rows[table]?[message.key] = record["after"] as? [String: Any]
                }
            }
        }
    }

    /// Compares all rows with those of the store.
    ///
    /// - Parameter references: by `table.column`, the table with assigned IDs that the column refers to.
    func expectEqual(
        to node: TestNode, references: [String: String] = ["stop.trip": "trip"],
        _ comment: Comment? = nil, _ place: SourceLocation = #_sourceLocation
    ) throws {
        for (table, found) in rows.sorted(by: { $0.key < $1.key }) {
            let expected = try node.store.database.read { db in
                try Row.fetchAll(db, sql: "SELECT * FROM \"\(table)\"")
            }
            var left = try found.values.map { row in
                var row = row
                for (column, target) in references where column.hasPrefix("\(table).") {
                    let name = String(column.dropFirst(table.count + 1))
                    guard let id = row[name] as? String else { continue }
                    row[name] = try #require(
                        rows[target]?.values.first { $0["_martlet_id"] as? String == id }?["id"], comment,
                        sourceLocation: place)
                }
                return row
            }
            #expect(left.count == expected.count, comment ?? "\(table)", sourceLocation: place)
            for row in expected {
                let match = left.firstIndex { Self.isEqual(row, $0) }
                if let match {
                    left.remove(at: match)
                } else {
                    Issue.record(
                        "\(table): no record has \(row); there are \(left). \(comment.map { "\($0)" } ?? "")",
                        sourceLocation: place)
                }
            }
        }
    }

    private static func isEqual(_ row: Row, _ record: [String: Any]) -> Bool {
        zip(row.columnNames, row.databaseValues).allSatisfy { name, value in
            switch (value.storage, record[name]) {
            case (.null, let other): other is NSNull
            case (.int64(let number), let other as NSNumber): other.int64Value == number
            case (.double(let number), let other as NSNumber): other.doubleValue == number
            case (.string(let text), let other as String): other.utf8.elementsEqual(text.utf8)
            case (.blob(let data), let other as String): Data(base64Encoded: other) == data
            default: false
            }
        }
    }
}
