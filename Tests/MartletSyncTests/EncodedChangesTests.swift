import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Large transactions, which are decoded one change at a time.
@Suite struct EncodedChangesTests {
    /// A transaction of more than ``EncodedChanges/minBytes``, with text that might be taken for the end of something.
    private func transaction(seed: UInt64, changes: Int = 12_000) -> WireTransaction {
        var random = SplitMix(seed: seed)
        let texts = ["", "}", "]", "{\"changes\":[", "\\", "\\\"", "\"", "é🐦\u{2028}", "\n", ",", "a\\"]
        func value() -> WireValue {
            var value = WireValue()
            switch Int.random(in: 0..<7, using: &random) {
            case 0: value.null = true
            case 1: value.integer = Int64.random(in: .min ... .max, using: &random)
            case 2: value.real = Double.random(in: -1e9...1e9, using: &random)
            case 3:
                value.blob = .init((0..<Int.random(in: 0..<200, using: &random)).map { UInt8(truncatingIfNeeded: $0) })
            case 4:
                value.reference.entity = "setting"
                var text = WireValue()
                text.text = texts.randomElement(using: &random) ?? ""
                value.reference.identity = [text]
            default: value.text = (0..<8).map { _ in texts.randomElement(using: &random) ?? "" }.joined()
            }
            return value
        }
        var transaction = WireTransaction()
        transaction.format = WireFormat.version
        transaction.origin = .init(random.bytes(16))
        transaction.sequence = 7
        transaction.hlc = HybridTime(milliseconds: 1_790_000_000_000).rawValue
        transaction.author = "\"changes\":[{}]"
        transaction.originName = "a ] } ,"
        transaction.restates = [1, 3]
        transaction.changes = (0..<changes).map { index in
            var change = WireChange()
            change.entity = texts[index % texts.count] + "t"
            change.kind = .insert
            var number = WireValue()
            number.integer = Int64(index)
            change.identity = [number]
            change.clockStep = UInt64(index % 3)
            for place in 0..<Int.random(in: 0..<12, using: &random) {
                var column = WireColumn()
                column.name = "c\(place)"
                column.value = value()
                change.columns.append(column)
            }
            return change
        }
        return transaction
    }

    @Test(arguments: WireEncoding.allCases, [1, 2, 3] as [UInt64])
    func decodingOneChangeAtATimeGivesTheSameAsDecodingAll(encoding: WireEncoding, seed: UInt64) throws {
        let whole = transaction(seed: seed)
        let payload = try WireFormat.encode(whole, as: encoding)
        try #require(payload.count >= EncodedChanges.minBytes)
        #expect(try WireFormat.decode(payload) == whole)
        let (header, changes) = try EncodedChanges.read(payload)
        var found = header
        try changes.forEach { found.changes.append(try $0.message()) }
        #expect(found == whole)
        #expect(changes.count == whole.changes.count && !changes.hasFault)
        #expect(changes.lastStep == whole.changes.reduce(0) { $0 + $1.clockStep })
        let decoded = try DecodedTransaction(payload: payload)
        #expect(decoded.latest?.rawValue == whole.hlc + (changes.lastStep ?? 0))
    }

    /// JSON from another program has its members in another order, and spaces.
    @Test(arguments: ["", " ", "\n\t "]) func jsonIsReadInAnyOrder(space: String) throws {
        func json(_ members: [String]) -> [UInt8] {
            Array("{\(space)\(members.joined(separator: ",\(space)"))\(space)}".utf8)
        }
        let origin = "\"origin\":\(space)\"AAAAAAAAAAAAAAAAAAAAAA==\""
        let changes =
            "\"changes\":\(space)[\(space){\"entity\":\"a]}\"}\(space),\(space){\"entity\":\"b\\\"\"}\(space)]"
        for members in [
            ["\"format\":1", origin, "\"sequence\":\"1\"", changes],
            [changes, "\"sequence\":\"1\"", "\"x\":[{}]", origin, "\"format\":1"],
        ] {
            let (header, read) = try EncodedChanges.read(json(members))
            #expect(header.sequence == 1 && header.changes.isEmpty)
            var entities: [String] = []
            try read.forEach { entities.append($0.entity) }
            #expect(entities == ["a]}", "b\""])
        }
    }

    /// A message that is cut off or changed is refused, or decoded as it would be all at once, and nothing traps.
    @Test(arguments: WireEncoding.allCases) func damagedTransactionsAreRefused(encoding: WireEncoding) throws {
        let whole = try WireFormat.encode(transaction(seed: 5, changes: 12), as: encoding)
        var random = SplitMix(seed: 9)
        func outcome(_ body: () throws -> WireTransaction) -> WireTransaction? { try? body() }
        var refused = 0
        for _ in 0..<4000 {
            var payload = whole
            if Bool.random(using: &random) { payload.removeLast(Int.random(in: 1..<whole.count, using: &random)) }
            let place = payload.indices.randomElement(using: &random) ?? 0
            payload[place] = UInt8.random(in: 0...255, using: &random)
            // The byte that states the encoding stays.
            payload[0] = whole[0]
            let expected = outcome { try WireFormat.decode(payload) }
            let found = outcome {
                let (header, changes) = try EncodedChanges.read(payload)
                var transaction = header
                try changes.forEach { transaction.changes.append(try $0.message()) }
                return transaction
            }
            if found == nil { refused += 1 }
            // It may refuse more: fields of unknown types, and changes in two places.
            if let found { #expect(found == expected) }
        }
        #expect(refused > 1000 && refused < 4000)
    }

    // MARK: Memory

    private func message(_ payload: [UInt8]) -> IncomingMessage {
        let origin = "AAAAAAAA-0000-4000-8000-000000000001"
        return IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 0), key: Array(origin.utf8),
            headers: [
                MessageHeader(WireHeader.format, "protobuf"), MessageHeader(WireHeader.origin, origin),
                MessageHeader(WireHeader.sequence, "1"),
            ], payload: payload, timestamp: 0, isBrokerTimestamp: false)
    }

    private static var header: WireTransaction {
        var header = WireTransaction()
        header.format = WireFormat.version
        header.origin = .init([0xAA, 0xAA, 0xAA, 0xAA, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1])
        header.sequence = 1
        header.hlc = HybridTime(milliseconds: 1_790_000_000_000).rawValue
        return header
    }

    /// Three million empty messages or strings in a field.
    private static func empty(_ field: UInt8) -> [UInt8] {
        (0..<6_000_000).map { $0 % 2 == 0 ? field << 3 | 2 : 0 }
    }

    private enum Swollen: String, CaseIterable {
        case changes, columns, identity, formerNames, references, restates, jsonChanges, jsonColumns

        /// Millions of parts of two bytes each, which take a hundred times as much memory once they are decoded.
        func payload() throws -> [UInt8] {
            func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
                var bytes = [number << 3 | 2]
                var length = content.count
                while length > 0x7F {
                    bytes.append(UInt8(length & 0x7F | 0x80))
                    length >>= 7
                }
                return bytes + [UInt8(length)] + content
            }
            let header = try WireFormat.encode(EncodedChangesTests.header, as: .protobuf)
            let json = Array(try WireFormat.encode(EncodedChangesTests.header, as: .json).dropLast())
            func list(_ element: String) -> [UInt8] {
                Array([String](repeating: element, count: 2_000_000).joined(separator: ",").utf8)
            }
            func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }
            return switch self {
            case .changes: header + EncodedChangesTests.empty(8)
            case .columns: header + field(8, EncodedChangesTests.empty(4))
            case .identity: header + field(8, EncodedChangesTests.empty(3))
            case .formerNames: header + field(8, field(4, EncodedChangesTests.empty(4)))
            case .references: header + field(8, field(3, field(7, EncodedChangesTests.empty(2))))
            case .restates: header + field(10, [UInt8](repeating: 1, count: 6_000_000))
            case .jsonChanges: json + utf8(",\"changes\":[") + list("{}") + utf8("]}")
            case .jsonColumns: json + utf8(",\"changes\":[{\"columns\":[") + list("{}") + utf8("]}]}")
            }
        }
    }

    @Test(arguments: Swollen.allCases) private func p131ATransactionOfMillionsOfEmptyPartsIsRefusedBeforeItIsDecoded(
        of what: Swollen
    ) throws {
        let lab = try Lab()
        let node = try lab.node("b")
        #expect(try node.receive([message(what.payload())]).quarantined == 1)
        let reason = try #require(try node.store.quarantined().first?.reason)
        #expect(
            reason.contains("more than") || reason.contains("more changes than") || reason.contains("longer than"),
            "\(reason)")
    }

    @Test func p131ADecodedFieldTakesNoMoreThan300Bytes() {
        let sizes = [
            MemoryLayout<WireChange>.stride, MemoryLayout<WireColumn>.stride, MemoryLayout<WireValue>.stride,
            MemoryLayout<WireReference>.stride, MemoryLayout<WireSnapshotRow>.stride,
            MemoryLayout<WireSnapshotTombstone>.stride,
            MemoryLayout<WireSnapshotOrigin>.stride, MemoryLayout<WireSnapshotPosition>.stride,
            MemoryLayout<WireSnapshotChunk>.stride,
            MemoryLayout<WireSnapshotEntity>.stride, MemoryLayout<WireSnapshotColumn>.stride,
            MemoryLayout<WireCheckEntity>.stride,
            MemoryLayout<WireCheckRange>.stride, MemoryLayout<WireSnapshotException>.stride,
            MemoryLayout<WireSnapshotRange>.stride,
        ]
        #expect(sizes.allSatisfy { $0 <= 300 }, "\(sizes)")
    }

    @Test func p131ChecksAndSnapshotsOfMillionsOfEmptyPartsAreRefused() throws {
        #expect(throws: StoreError.self) {
            try SnapshotFormat.decode([0x08, 1, 0x1A, 0x80, 0x9B, 0xEE, 0x02] + Self.empty(2))
        }
        #expect(throws: WireError.self) { try WireShape.check.checkFields([0x08, 1] + Self.empty(5)) }
        #expect(throws: WireError.self) {
            try WireShape.snapshotPart.checkFields([0x08, 1, 0x12, 0x80, 0x9B, 0xEE, 0x02] + Self.empty(9))
        }
    }

    // MARK: Chunks

    /// SQLite sorts through a temporary file, with all bytes of all chunks, again for each chunk.
    @Test func p130TheSizeOfStoredChunksIsSummedWithoutSortingThem() throws {
        let lab = try Lab()
        let node = try lab.node("a")
        let plan = try node.rows("EXPLAIN QUERY PLAN \(ChunkTally.query)")
        #expect(plan.count == 1 && !plan[0].contains("TEMP B-TREE"), "\(plan)")
    }
}
