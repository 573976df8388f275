import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows of a snapshot that are inserted as they come, and the same rows merged: both must leave the same store.
///
/// A filter that takes every row makes a node merge each of them.
@Suite struct PlainSnapshotTests {
    private static let schema = """
        CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT NOT NULL, budget REAL);
        CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER REFERENCES trip(id), place TEXT);
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
        CREATE TABLE seat(key TEXT PRIMARY KEY NOT NULL, place TEXT UNIQUE);
        """

    /// Two nodes with the same empty tables, of which the second one merges each row.
    private func readers(of tables: [String], _ lab: SnapshotLab, schema: String? = nil) throws -> [TestNode] {
        var filters = SyncFilters()
        for table in tables { filters.subscribe[table] = "1 = 1" }
        let merging = filters
        return [
            try lab.node("plain", schema: schema),
            try lab.node("merging", schema: schema) { $0.filters = merging },
        ]
    }

    /// Makes a snapshot whose parts have many rows, which is then all that the topics have.
    private func makeLargeParts(_ node: TestNode, _ lab: SnapshotLab) throws {
        _ = try SnapshotTopic(engine: node.engine, bus: lab.snapshots, topic: "t").make()
        try lab.prune()
    }

    /// The history, without the times of what was changed or removed when it was applied.
    private func history(_ node: TestNode) throws -> [HistoryChange] {
        try node.store.fetchHistory().flatMap(\.changes).map { change in
            var change = change
            if change.kind != .insert { change.timestamp = .distantPast }
            return change
        }
    }

    /// What the node knows of each row, with its integer key.
    private func clocks(_ node: TestNode) throws -> [String] {
        try node.store.trackedEntities().flatMap { entity in
            try node.records(of: entity.name).map { record in
                let values = record.values.sorted { $0.key < $1.key }
                let key = record.localID.map { "\($0)" } ?? "none"
                return "\(entity.name) \(record.identity.bytes) \(key) \(record.clocks) \(values)"
            }.sorted()
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>) func rowsThatAreInsertedOrMergedLeaveTheSameStore(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed &+ 60_000)
        var writer = CompanyWriter(seed: seed &* 31)
        let lab = try SnapshotLab(Company.schema, request: Company.request)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        for _ in 0..<30 + random.below(30) {
            try writer.write(random.once(in: 2) ? a : b)
            if random.once(in: 4) { try exchange([a, b]) }
        }
        try exchange([a, b])
        if random.once(in: 2) {
            try a.makeSnapshot()
            try lab.prune()
        } else {
            try makeLargeParts(a, lab)
        }
        let tables = try a.store.trackedEntities().map(\.name)
        let nodes = try readers(of: tables, lab)
        for node in nodes { try node.consume() }
        let (plain, merging) = (nodes[0], nodes[1])
        #expect(try Company.contents(plain) == Company.contents(a))
        #expect(try Company.contents(plain) == Company.contents(merging))
        #expect(try clocks(plain) == clocks(merging))
        #expect(try plain.knowledge() == merging.knowledge())
        #expect(try history(plain) == history(merging))
        #expect(try StoreDigest.compute(plain.store).entities == StoreDigest.compute(merging.store).entities)
        #expect(try plain.rows("PRAGMA integrity_check") == ["ok"])
        try expectSame([a, plain])
    }

    /// Local rows from before the snapshot's rows, and others that are written between its parts. The process is killed
    /// after each part.
    @Test func localWritesBeforeAndDuringALoadWinOrLoseByTheirStamps() throws {
        let lab = try SnapshotLab(Self.schema)
        let nodes = try readers(of: ["trip", "stop", "setting", "seat"], lab)
        for node in nodes {
            try node.write(
                """
                INSERT INTO setting VALUES ('k3', 'early'), ('k5', 'early'), ('mine', 'early');
                DELETE FROM setting WHERE key = 'k5';
                INSERT INTO seat VALUES ('early', 'p2');
                INSERT INTO trip(id, name) VALUES (1, 'early')
                """)
        }
        let a = try lab.node("a")
        for number in 1...9 {
            try a.write(
                """
                INSERT INTO trip(id, name, budget) VALUES (\(number), 'trip \(number)', \(number).5);
                INSERT INTO stop(trip, place) VALUES (\(number), 'place \(number)');
                INSERT INTO setting VALUES ('k\(number)', \(number));
                INSERT INTO seat VALUES ('s\(number)', 'p\(number)')
                """)
        }
        try a.write("UPDATE trip SET name = 'renamed' WHERE id = 4; DELETE FROM setting WHERE key = 'k6'")
        try a.publish()
        try a.makeSnapshot()
        try lab.prune()
        for node in nodes {
            var isFinished = false
            for step in 1...100 where !isFinished {
                try node.restart()
                isFinished = try #require(try node.snapshots?.load(partitionCount: 2) { _ in false }).isFinished
                if isFinished { continue }
                try node.write(
                    """
                    INSERT OR IGNORE INTO setting VALUES ('k8', 'during \(step)'), ('new \(step)', 1);
                    UPDATE setting SET value = 'during' WHERE key = 'k2';
                    INSERT OR IGNORE INTO seat VALUES ('during', 'p9');
                    DELETE FROM seat WHERE key = 's7';
                    UPDATE trip SET budget = \(step) WHERE name = 'trip 3'
                    """)
            }
            #expect(isFinished)
        }
        let (plain, merging) = (nodes[0], nodes[1])
        try expectState(plain, is: WholeState.text(of: merging))
        #expect(try plain.rows("SELECT id, name, budget FROM trip ORDER BY id").count == 10)
        #expect(
            try plain.rows("SELECT key, value FROM setting WHERE key IN ('k2', 'k3', 'k5', 'k8', 'mine') ORDER BY key")
                == ["k2|during", "k3|3", "k5|5", "k8|during 1", "mine|early"])
        #expect(
            try plain.rows("SELECT key FROM seat WHERE place IN ('p2', 'p7', 'p9') ORDER BY place") == ["s2", "during"])
        #expect(try plain.pendingRows().map(\.text).sorted() == merging.pendingRows().map(\.text).sorted())
    }

    @Test func rowsThatATableRefusesWaitAndTheOthersAreInserted() throws {
        let lab = try SnapshotLab(Self.schema)
        let a = try lab.node("a")
        for number in 1...40 {
            try a.write(
                """
                INSERT INTO trip(name, budget) VALUES ('trip \(number)', \(number));
                INSERT INTO stop(trip, place) VALUES (last_insert_rowid(), 'place \(number)')
                """)
        }
        try a.publish()
        try makeLargeParts(a, lab)
        let strict = Self.schema.replacing("budget REAL", with: "budget REAL CHECK (budget <> 7)")
        let nodes = try readers(of: ["trip", "stop", "setting", "seat"], lab, schema: strict)
        for node in nodes {
            try node.consume()
            #expect(try node.rows("SELECT count(*), sum(budget) FROM trip") == ["39|813.0"])
            #expect(try node.rows("SELECT count(*), count(trip) FROM stop") == ["40|39"])
            #expect(try node.pendingRows().map(\.reason) == [.constraint])
            #expect(try node.pendingReferences().count == 1)
        }
        try expectState(nodes[0], is: WholeState.text(of: nodes[1]))
        #expect(try history(nodes[0]) == history(nodes[1]))
    }

    /// Rows that existed before their table was attached have the lowest clock.
    @Test func rowsFromBeforeTheTrackingOfTheirTableKeepTheirClocks() throws {
        let lab = try SnapshotLab(
            Self.schema + "INSERT INTO setting VALUES ('old', 1); INSERT INTO trip(name) VALUES ('old')")
        let a = try lab.node("a")
        try a.makeSnapshot()
        let nodes = try readers(of: ["trip", "stop", "setting", "seat"], lab, schema: Self.schema)
        for node in nodes { #expect(try node.snapshots?.load(partitionCount: 2)?.rows == 2) }
        #expect(try clocks(nodes[0]) == clocks(nodes[1]))
        try expectBoth(nodes[0], nodes[1], are: "setting key='old' value=1\ntrip name='old' budget=NULL")
    }

    /// A row with a reference takes the merge where it is not plain, so this fails if no row is.
    @Test func aRowThatMeetsNothingTakesLessWorkThanItsMerge() throws {
        let lab = try SnapshotLab(Self.schema)
        let a = try lab.node("a")
        try a.write(
            """
            INSERT INTO trip(id, name) VALUES (1, 'first'), (2, 'second');
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
            INSERT INTO stop(trip, place) SELECT 1 + i % 2, 'p' || i FROM n
            """)
        try a.publish()
        try makeLargeParts(a, lab)
        let work = try readers(of: ["stop"], lab).map { node in
            let meter = WorkMeter(node.engine.session.database)
            let loaded = try node.snapshots?.load(partitionCount: 2)
            #expect(loaded?.rows == 1502)
            return meter.count
        }
        #expect(work[0] * 10 < work[1] * 9, "\(work)")
    }

    // MARK: Parts

    @Test func partsThatAreEncodedRowByRowAreThoseThatProtobufDecodes() throws {
        var row = WireSnapshotRow()
        row.entity = 300
        row.identity = [try WireValue(.text(String(repeating: "k", count: 200)))]
        row.values = [try WireValue(.integer(-1)), try WireValue(.null), try WireValue(.real(.infinity))]
        row.inserted.hlc = .max
        row.localID = -5
        var tombstone = WireSnapshotTombstone()
        tombstone.identity = [try WireValue(.blob([]))]
        tombstone.lasting = true
        var chunk = WireSnapshotChunk()
        chunk.payload = Data(repeating: 7, count: 70_000)
        var contents = WireSnapshotContents()
        for part in 0..<4 {
            #expect(try SnapshotFormat.decode(SnapshotFormat.encode(.contents(contents))) == .contents(contents))
            switch part {
            case 0: contents.rows = [row, WireSnapshotRow(), row]
            case 1: contents.tombstones = [tombstone]
            case 2: contents.deferred = [Data(), Data([1, 2])]
            default: contents.chunks = [chunk]
            }
        }
        #expect(try SnapshotFormat.decode(SnapshotFormat.encode(.contents(contents))) == .contents(contents))
        contents = WireSnapshotContents()
        contents.deferred = [Data([9])]
        #expect(try SnapshotFormat.encode(.contents(contents)) == [8, 1, 26, 3, 26, 1, 9])
    }

    @Test func onlyRowsThatWereInsertedWholeAndNeverChangedArePlain() throws {
        var row = WireSnapshotRow()
        row.identity = [try WireValue(.text("k"))]
        row.values = [try WireValue(.text("k")), try WireValue(.integer(1))]
        row.inserted.hlc = 1
        func isPlain(_ change: (inout WireSnapshotRow) throws -> Void) throws -> Bool {
            var changed = row
            try change(&changed)
            var contents = WireSnapshotContents()
            contents.rows = [changed]
            return try DecodedSnapshotPart(SnapshotFormat.encode(.contents(contents))).rows.plain(0) != nil
        }
        #expect(try isPlain { _ in })
        #expect(try isPlain { $0.localID = 7 })
        #expect(try !isPlain { $0.deleted.hlc = 1 })
        #expect(try !isPlain { $0.exceptions = [WireSnapshotException()] })
        #expect(try !isPlain { $0.columns = [1, 0] })
        #expect(try !isPlain { $0.clearInserted() })
        #expect(try !isPlain { $0.identity = [] })
        #expect(try !isPlain { $0.identity = [try WireValue(.null)] })
        #expect(try isPlain { $0.values = [try WireValue(.real(.nan))] })
        #expect(try !isPlain { $0.identity = [try WireValue(.real(.nan))] })
        #expect(try !isPlain { $0.values = [WireValue()] })
    }

    /// What is decoded without Protobuf's help is what Protobuf decodes.
    @Test(arguments: 1...20 as ClosedRange<UInt64>) func plainRowsHaveTheValuesOfTheirMessages(seed: UInt64) throws {
        var random = SplitMix(seed: seed &+ 70_000)
        var messages: [WireSnapshotRow] = []
        for _ in 0..<50 {
            var row = WireSnapshotRow()
            row.entity = random.pick([0, 1, 200, .max])
            for _ in 0..<random.below(3) { row.identity.append(try value(&random)) }
            for _ in 0..<random.below(6) { row.values.append(try value(&random)) }
            if !random.once(in: 8) { row.inserted.hlc = random.pick([0, 1, .max]) }
            if random.once(in: 2) { row.inserted.node = random.pick([0, 1, 300]) }
            if random.once(in: 2) { row.localID = random.pick([0, -1, 1, .max, .min]) }
            if random.once(in: 8) { row.deleted.hlc = 1 }
            messages.append(row)
        }
        var contents = WireSnapshotContents()
        contents.rows = messages
        contents.deferred = [Data([1])]
        let part = try DecodedSnapshotPart(SnapshotFormat.encode(.contents(contents)))
        var rest = contents
        rest.rows = []
        #expect(part.kind == .contents(rest))
        #expect(part.rows.count == messages.count)
        #expect(try messages.indices.map { try part.rows.message($0) } == messages)
        #expect(try plainCount(part.rows) > 5)
    }

    /// Expects that the plain rows are what Protobuf decodes, and returns how many there are.
    private func plainCount(_ rows: SnapshotRows) throws -> Int {
        var count = 0
        for index in rows.indices {
            guard let plain = rows.plain(index) else { continue }
            let message = try rows.message(index)
            count += 1
            #expect(message.hasInserted && !message.hasDeleted)
            #expect(plain.entity == Int(message.entity))
            #expect(plain.time.rawValue == message.inserted.hlc && plain.node == Int(message.inserted.node))
            #expect(plain.localID == (message.hasLocalID ? message.localID : nil))
            #expect(try plain.values == message.values.map { try $0.value() })
            #expect(try plain.identityValues == message.identity.map { try $0.value() })
            #expect(try plain.identity == StableID(wire: message.identity))
        }
        return count
    }

    /// Whatever the bytes are, a part is decoded as Protobuf decodes the whole of it, or refused as a whole.
    private func expectDecodedAsAWhole(_ bytes: [UInt8]) throws {
        let whole = try? SnapshotFormat.decode(bytes)
        let part = try? DecodedSnapshotPart(bytes)
        #expect((whole == nil) == (part == nil), "\(bytes)")
        guard let whole, let part else { return }
        guard case .contents(let contents) = whole, case .contents(var rest) = part.kind else {
            // Values that are not numbers are not equal.
            #expect(try SnapshotFormat.encode(whole) == SnapshotFormat.encode(part.kind), "\(bytes)")
            #expect(part.rows.count == 0)
            return
        }
        rest.rows = try part.rows.indices.map { try part.rows.message($0) }
        #expect(
            try SnapshotFormat.encode(.contents(rest)) == SnapshotFormat.encode(.contents(contents)), "\(bytes)")
        _ = try plainCount(part.rows)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>) func damagedPartsAreDecodedByProtobufsRules(seed: UInt64) throws {
        var random = SplitMix(seed: seed &+ 80_000)
        var contents = WireSnapshotContents()
        for _ in 0..<1 + random.below(4) {
            var row = WireSnapshotRow()
            row.entity = random.pick([0, 1, 200])
            row.identity = [try value(&random)]
            for _ in 0..<random.below(4) { row.values.append(try value(&random)) }
            row.inserted.hlc = 7
            if random.once(in: 2) { row.localID = 5 }
            contents.rows.append(row)
        }
        if random.once(in: 2) { contents.deferred = [Data([1, 2])] }
        let bytes = try SnapshotFormat.encode(.contents(contents))
        for _ in 0..<200 {
            var damaged = bytes
            for _ in 0..<1 + random.below(3) {
                let place = random.below(damaged.count)
                switch random.below(4) {
                case 0: damaged[place] = UInt8(random.below(256))
                case 1: damaged[place] ^= 1 << UInt8(random.below(8))
                case 2: damaged.insert(contentsOf: random.bytes(1 + random.below(3)), at: place)
                default: if damaged.count > 4 { damaged.remove(at: place) }
                }
            }
            try expectDecodedAsAWhole(damaged)
            try expectDecodedAsAWhole(Array(bytes.prefix(random.below(bytes.count))))
        }
    }

    /// Protobuf skips fields that it doesn't know, groups among them, wherever they are.
    @Test func partsWithUnknownFieldsAreDecoded() throws {
        var row = WireSnapshotRow()
        row.identity = [try WireValue(.text("k"))]
        row.values = [try WireValue(.text("k"))]
        row.inserted.hlc = 1
        var contents = WireSnapshotContents()
        contents.rows = [row]
        let plain = try SnapshotFormat.encode(.contents(contents))
        // What precedes the row: the version, and tags and sizes of the contents and the row.
        let encoded = Array(plain.dropFirst(6))
        func field(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { [tag, UInt8(content.count)] + content }
        let version: [UInt8] = [8, 1]
        let rows = field(18, encoded)
        let whole = field(26, rows)
        #expect(plain == version + whole)
        // A group, a text, a number and eight bytes, as field 15.
        let unknown: [[UInt8]] = [[123, 124], [122, 1, 65], [120, 1], [121, 1, 2, 3, 4, 5, 6, 7, 8], []]
        for other in unknown {
            let parts: [[UInt8]] = [
                version + whole + other,
                version + field(26, other + rows),
                version + field(26, field(18, encoded + other)),
                whole + other + version,
                version + whole + whole,
            ]
            for bytes in parts {
                try expectDecodedAsAWhole(bytes)
                let part = try DecodedSnapshotPart(bytes)
                #expect(part.rows.count > 0)
                #expect(try part.rows.message(0).identity == row.identity)
            }
        }
    }

    private func value(_ random: inout SplitMix) throws -> WireValue {
        switch random.below(8) {
        case 0: return try WireValue(.null)
        case 1: return try WireValue(.integer(random.pick([0, 1, -1, 300, .max, .min])))
        case 2: return try WireValue(.real(random.pick([0, -0.0, 1.5, .infinity])))
        case 3:
            return try WireValue(
                .text(random.pick(["", "a\0b", "\u{1F600}e\u{301}", String(repeating: "x", count: 300)])))
        case 4: return try WireValue(.blob(random.bytes(random.below(200))))
        case 5: return try WireValue(.rawText([0xff, 0x41]))
        case 6: return try WireValue(.rawText([0x41]))
        default:
            let target = StableID(values: [
                .text("t"), .reference(Reference(entity: "b", identity: StableID(values: [.integer(1)]))),
            ])
            return try WireValue(.reference(Reference(entity: "a", identity: target)))
        }
    }

    // MARK: The next part

    /// A part that can't be decoded does not keep the parts before it from being applied.
    @Test func partsBeforeADamagedOneAreApplied() throws {
        let lab = try SnapshotLab(Self.schema, partitions: 1)
        let a = try lab.node("a")
        for number in 1...9 { try a.write("INSERT INTO setting VALUES ('k\(number)', \(number))") }
        try a.publish()
        let made = try a.makeSnapshot()
        // The header is message 0, and each message after it has three rows.
        try lab.rewrite { messages in
            messages.map { message in
                var message = message
                if message.text("martlet-number") == "3" {
                    message.payload = [255]
                    message.headers.removeAll { $0.name == "martlet-crc32" }
                }
                return message
            }
        }
        let b = try lab.node("b")
        var rows: [Int] = []
        let error = try #require(throws: StoreError.self) {
            try b.snapshots?.load(made.id, partitionCount: 1) { progress in
                rows.append(progress.rows)
                return true
            }
        }
        #expect(error.code == .corrupt)
        #expect(rows == [0, 3, 6])
        #expect(try b.rows("SELECT count(*) FROM setting") == ["6"])
    }
}
