import MartletBus
import MartletCore
import MartletIngest
import MartletSimulator
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Random changes at a source and on devices, some of which ingest. A model without the engine says what the rows are.
@Suite(.timeLimit(.minutes(5))) struct IngestModelTests {
    fileprivate struct World {
        let lab: IngestLab
        let nodes: [TestNode]
        let source: SourceTopic
        var random: MartletTestSupport.SplitMix
        /// The rows at the source.
        var rows: [Int: String] = [:]
        /// What was sent, to be sent again.
        var sent: [(operation: String, id: Int, before: String?, after: String?, at: Int64, lsn: Int64)] = []

        init(seed: UInt64) throws {
            lab = try IngestLab()
            let lab = lab
            nodes = try ["a", "b", "c"].map { try lab.node($0) }
            source = lab.topic(partitions: 2)
            random = MartletTestSupport.SplitMix(seed: seed)
        }

        private mutating func row(_ id: Int) -> String {
            #"{"id":\#(id),"name":"s\#(random.below(100))","price":\#(random.below(100)),"stock":\#(random.below(9))}"#
        }

        mutating func changeSource() throws {
            let id = random.below(6)
            let key = #"{"id":\#(id)}"#
            let before = random.once(in: 3) ? nil : rows[id]
            SQLiteClock.advance()
            let now = SQLiteClock.milliseconds
            // Now and then, the source's clock goes back.
            let at = random.once(in: 8) ? now - Int64(random.below(5000)) : now
            let operation: String
            if rows[id] == nil {
                rows[id] = row(id)
                operation = random.once(in: 5) ? "r" : "c"
            } else if random.once(in: 3) {
                rows[id] = nil
                operation = "d"
            } else {
                rows[id] = row(id)
                operation = random.once(in: 5) ? "r" : "u"
            }
            try source.send(operation, key: key, before: before, after: rows[id], at: at)
            sent.append((operation, id, before, rows[id], at, source.position))
            if operation == "d", !random.once(in: 4) { try source.send(key, nil) }
        }

        mutating func repeatRecord() throws {
            guard !sent.isEmpty else { return }
            let old = random.pick(sent)
            try source.send(
                old.operation, key: #"{"id":\#(old.id)}"#, before: old.before, after: old.after, at: old.at,
                lsn: old.lsn)
        }

        mutating func changeDevice() throws {
            let node = random.pick(nodes)
            let id = random.below(6)
            switch random.below(4) {
            case 0: try node.write("DELETE FROM product WHERE id = \(id)")
            case 1:
                try node.write(
                    "INSERT INTO product VALUES (\(id), 'd\(random.below(100))', 1, 1) ON CONFLICT DO NOTHING")
            default: try node.write("UPDATE product SET stock = \(100 + random.below(100)) WHERE id = \(id)")
            }
        }

        mutating func step(devices: Bool) throws {
            switch random.below(10) {
            case 0...3: try changeSource()
            case 4: try repeatRecord()
            case 5, 6: if devices { try changeDevice() }
            case 7: try lab.ingest(nodes[0])
            case 8: try lab.ingest(nodes[1])
            default:
                let node = random.pick(nodes)
                if random.once(in: 4) { try node.restart() }
                try node.publish()
                try random.pick(nodes).consume()
            }
        }

        func finish() throws {
            for node in nodes.prefix(2) { try lab.ingest(node) }
            try exchange(nodes)
        }
    }

    private func contents(_ node: TestNode) throws -> [String] {
        try node.rows("SELECT id, name, price, stock FROM product ORDER BY id")
    }

    @Test(arguments: 0..<30 as Range<UInt64>) func allNodesHaveWhatTheStampsSay(seed: UInt64) throws {
        var world = try World(seed: seed)
        for _ in 0..<60 { try world.step(devices: true) }
        try world.finish()
        var oracle = Oracle()
        for message in try world.messages() { oracle.take(try PublishedTransaction(decoding: message.payload)) }
        let entities = try world.nodes[0].store.trackedEntities()
        let expected = try #require(oracle.tables(entities)?["product"])
        for node in world.nodes {
            let rows = try contents(node)
            #expect(rows == World.text(expected), "\(node.name), seed \(seed)")
        }
    }

    /// Without other writers, whatever is sent again and wherever clocks go.
    @Test(arguments: 100..<130 as Range<UInt64>) func withoutDevicesTheRowsAreThoseOfTheSource(seed: UInt64) throws {
        var world = try World(seed: seed)
        for _ in 0..<60 { try world.step(devices: false) }
        try world.finish()
        let expected = world.rows.sorted { $0.key < $1.key }.map(\.value)
        for node in world.nodes {
            let rows = try node.rows(
                "SELECT id, name, CAST(price AS INTEGER), stock FROM product ORDER BY id"
            ).map { text in
                let parts = text.split(separator: "|")
                return #"{"id":\#(parts[0]),"name":"\#(parts[1])","price":\#(parts[2]),"stock":\#(parts[3])}"#
            }
            #expect(rows == expected, "\(node.name), seed \(seed)")
        }
    }
}

extension IngestModelTests.World {
    fileprivate func messages() throws -> [IncomingMessage] {
        let consumer = try lab.bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        return try consumer.poll(maxCount: .max >> 1, timeout: .milliseconds(1)).messages
    }

    /// The rows of the model, in the form of ``TestNode/rows(_:)``.
    fileprivate static func text(_ rows: [StableID: [String: Value]]) -> [String] {
        rows.values.map { row in
            ["id", "name", "price", "stock"].map { text(row[$0]) }.joined(separator: "|")
        }.sorted()
    }

    private static func text(_ value: Value?) -> String {
        switch value {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): text
        default: "NULL"
        }
    }
}
