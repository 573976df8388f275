import MartletStore
import MartletTestSupport
import Testing

/// Another database and devices change the same rows. A model of that database takes exported records by the rule of
/// `Examples/postgres/README.md`. In the end it has the rows of the nodes.
@Suite(.timeLimit(.minutes(5))) struct BothWaysModelTests {
    /// A change that the reader publishes.
    private struct SourceChange {
        var operation: String
        var id: Int
        var before: String?
        var after: String?
        /// The time of the commit.
        var at: Int64 = 0
    }

    /// What the database knows of a row, which may be gone.
    private struct Entry {
        var hlc: Int64 = 0
        var changed: Int64?
        var inserted: Int64?
    }

    private struct World {
        let lab: IngestLab
        let nodes: [TestNode]
        let source: SourceTopic
        var random: SplitMix
        var rows: [Int: [String: Int]] = [:]
        var entries: [Int: Entry] = [:]
        var unread: [SourceChange] = []
        /// What the reader has published. A reader that was killed may publish the last of it again.
        var sent: [(change: SourceChange, lsn: Int64)] = []
        /// How far the writer has read the exported topic.
        var offset: Int64 = 0
        /// False: one node always exports.
        let takesTurns: Bool

        init(seed: UInt64) throws {
            lab = try IngestLab("CREATE TABLE product(id INTEGER PRIMARY KEY NOT NULL, price INTEGER, stock INTEGER)")
            let lab = lab
            nodes = try ["a", "b", "c"].map { try lab.node($0) }
            source = lab.topic()
            random = SplitMix(seed: seed)
            takesTurns = seed % 4 == 3
        }

        private func json(_ id: Int) -> String? {
            rows[id].map { #"{"id":\#(id),"price":\#($0["price"] ?? 0),"stock":\#($0["stock"] ?? 0)}"# }
        }

        // MARK: The database

        /// A program's transaction. Its statements have earlier times than its commit, and devices may write between
        /// these.
        mutating func changeRow() throws {
            let id = random.below(2)
            SQLiteClock.advance()
            var changes: [SourceChange] = []
            if rows[id] == nil {
                changes.append(insert(id))
            } else if random.once(in: 3) {
                changes.append(delete(id))
                if random.once(in: 3) { changes.append(insert(id)) }
            } else {
                let before = json(id)
                rows[id]?[random.once(in: 2) ? "price" : "stock"] = random.below(1000)
                entries[id, default: Entry()].changed = SQLiteClock.milliseconds
                changes.append(SourceChange(operation: "u", id: id, before: before, after: json(id)))
            }
            if random.once(in: 4) { try changeDevice() }
            if random.once(in: 2) { SQLiteClock.advance() }
            let commit = SQLiteClock.milliseconds
            unread += changes.map { change in
                var change = change
                change.at = commit
                return change
            }
        }

        private mutating func insert(_ id: Int) -> SourceChange {
            let now = SQLiteClock.milliseconds
            rows[id] = ["price": random.below(1000), "stock": random.below(1000)]
            entries[id] = Entry(hlc: entries[id]?.hlc ?? 0, changed: now, inserted: now)
            return SourceChange(operation: "c", id: id, after: json(id))
        }

        private mutating func delete(_ id: Int) -> SourceChange {
            let before = json(id)
            rows[id] = nil
            entries[id] = Entry(hlc: entries[id]?.hlc ?? 0, changed: SQLiteClock.milliseconds)
            return SourceChange(operation: "d", id: id, before: before)
        }

        /// The reader publishes some changes.
        mutating func read(_ count: Int) throws {
            for change in unread.prefix(count) {
                try publish(change, lsn: nil)
                sent.append((change, source.position))
            }
            unread.removeFirst(min(count, unread.count))
        }

        /// The reader begins again, with changes that it has published.
        mutating func repeatRecords() throws {
            for (change, lsn) in sent.suffix(random.below(6)) { try publish(change, lsn: lsn) }
        }

        private func publish(_ change: SourceChange, lsn: Int64?) throws {
            let key = #"{"id":\#(change.id)}"#
            try source.send(
                change.operation, key: key, before: change.before, after: change.after, at: change.at, lsn: lsn)
            if change.operation == "d" { try source.send(key, nil) }
        }

        /// The writer takes some records.
        mutating func write(_ count: Int) throws {
            for record in try lab.exported(from: &offset, limit: count) {
                let id = try #require(record.key["id"] as? Int)
                // Whoever changes the row from now on does so later.
                while let hlc = record.hlc, SQLiteClock.milliseconds <= hlc >> 16 { SQLiteClock.advance() }
                var entry = entries[id] ?? Entry()
                let hlc = record.hlc ?? 0
                if let row = record.row {
                    guard entry.hlc <= hlc, entry.changed ?? 0 <= hlc >> 16 else { continue }
                    entry.hlc = hlc
                    rows[id] = row.compactMapValues { $0 as? Int }.filter { $0.key != "id" }
                } else {
                    let isOwn = record.author == TransactionAuthor.ingest
                    let deleted = record.hlc == nil ? .max : isOwn ? -1 : hlc >> 16
                    guard entry.inserted ?? .min <= deleted else { continue }
                    entry = Entry(hlc: max(entry.hlc, hlc))
                    rows[id] = nil
                }
                entries[id] = entry
            }
        }

        // MARK: The nodes

        mutating func changeDevice() throws {
            let node = random.pick(nodes)
            let id = random.below(2)
            switch random.below(4) {
            case 0, 1: try node.write("DELETE FROM product WHERE id = \(id)")
            case 2:
                try node.write(
                    "INSERT INTO product VALUES (\(id), \(random.below(1000)), 1) ON CONFLICT DO NOTHING")
            default: try node.write("UPDATE product SET stock = \(random.below(1000)) WHERE id = \(id)")
            }
        }

        mutating func export() throws {
            let node = takesTurns ? random.pick(nodes) : nodes[0]
            try lab.export(node)
        }

        mutating func step() throws {
            switch random.below(14) {
            case 0...2: try changeRow()
            case 3, 4: try changeDevice()
            case 5, 6: try read(1 + random.below(3))
            case 7: try lab.ingest(nodes[random.below(2)])
            case 8: try export()
            case 9: try write(1 + random.below(5))
            case 10: try repeatRecords()
            case 11: if random.once(in: 2) { try random.pick(nodes).restart() }
            default:
                try random.pick(nodes).publish()
                try random.pick(nodes).consume()
            }
        }

        mutating func finish() throws {
            for _ in 0..<3 {
                try read(.max)
                for node in nodes.prefix(2) { try lab.ingest(node) }
                try exchange(nodes)
                try export()
                try write(.max >> 1)
            }
        }
    }

    @Test(arguments: 0..<150 as Range<UInt64>) func bothSidesEndEqual(seed: UInt64) throws {
        var world = try World(seed: seed)
        for _ in 0..<60 { try world.step() }
        try world.finish()
        let expected = world.rows.sorted { $0.key < $1.key }.map {
            "\($0.key)|\($0.value["price"] ?? 0)|\($0.value["stock"] ?? 0)"
        }
        for node in world.nodes {
            #expect(try node.rows("SELECT * FROM product ORDER BY id") == expected, "\(node.name), seed \(seed)")
        }
    }
}
