import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Transactions that are decoded from their chunks, one chunk at a time (docs/decisions/0063).
@Suite struct PiecedTransactionTests {
    /// A payload in pieces that counts how many were read.
    private final class Pieces: StoredPayload {
        let count: Int
        // Safe because one test uses them.
        nonisolated(unsafe) private var index = 0
        nonisolated(unsafe) private(set) var readCount = 0
        private let piece: @Sendable (Int) -> [UInt8]?

        init(_ payload: [UInt8], size: Int) {
            count = payload.count
            piece = { index in
                let start = index * size
                return start < payload.count ? Array(payload[start..<min(payload.count, start + size)]) : nil
            }
        }

        /// A payload that never ends.
        init(endless piece: @escaping @Sendable (Int) -> [UInt8]) {
            count = 1 << 40
            self.piece = piece
        }

        func rewind() { index = 0 }

        func next() throws -> [UInt8]? {
            defer { index += 1 }
            readCount += 1
            return piece(index)
        }
    }

    private static let unlimited = 1 << 40

    private func transaction(seed: UInt64, changes: Int) -> WireTransaction {
        var random = SplitMix(seed: seed)
        let texts = ["", "}", "]", "{\"changes\":[", "\\", "\\\"", "é🐦\u{2028}", "\n", ",", "a\\"]
        var transaction = WireTransaction()
        transaction.format = WireFormat.version
        transaction.origin = .init(random.bytes(16))
        transaction.sequence = 7
        transaction.hlc = HybridTime(milliseconds: 1_790_000_000_000).rawValue
        transaction.author = "\"changes\":[{}]"
        transaction.restates = [1, 3]
        transaction.changes = (0..<changes).map { index in
            var change = WireChange()
            change.entity = texts[index % texts.count] + "t"
            change.kind = .insert
            change.clockStep = UInt64(index % 3)
            var identity = WireValue()
            identity.integer = Int64(index)
            change.identity = [identity]
            for place in 0..<Int.random(in: 0..<5, using: &random) {
                var column = WireColumn()
                column.name = "c\(place)"
                column.value.text = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                    texts.randomElement(using: &random) ?? ""
                }.joined()
                change.columns.append(column)
            }
            return change
        }
        return transaction
    }

    private func read(_ pieces: Pieces, limit: Int = unlimited) throws -> WireTransaction {
        let (header, changes) = try EncodedChanges.read(.stored(pieces), maxChangeBytes: limit)
        var transaction = header
        try changes.forEach { transaction.changes.append(try $0.message()) }
        #expect(changes.count == transaction.changes.count)
        return transaction
    }

    @Test(arguments: WireEncoding.allCases, [1, 2, 7, 100, 1000, 1 << 20])
    func aTransactionInPiecesIsReadAsOneInMemory(encoding: WireEncoding, size: Int) throws {
        for seed in 1...4 as ClosedRange<UInt64> {
            let whole = transaction(seed: seed, changes: 60)
            let payload = try WireFormat.encode(whole, as: encoding)
            #expect(try read(Pieces(payload, size: size)) == whole)
        }
        let empty = transaction(seed: 5, changes: 0)
        #expect(try read(Pieces(WireFormat.encode(empty, as: encoding), size: size)) == empty)
    }

    /// The header may come after the changes, and in several places.
    @Test(arguments: [1, 3, 1000]) func fieldsOfATransactionMayComeInAnyOrder(size: Int) throws {
        let whole = transaction(seed: 6, changes: 5)
        var header = whole
        header.changes = []
        var bytes: [UInt8] = []
        for change in whole.changes {
            var part = WireTransaction()
            part.changes = [change]
            bytes += try WireFormat.encode(part, as: .protobuf)
        }
        bytes += try WireFormat.encode(header, as: .protobuf)
        #expect(try read(Pieces(bytes, size: size)) == whole)
    }

    @Test(arguments: WireEncoding.allCases)
    func aDamagedTransactionInPiecesIsReadAsInMemory(encoding: WireEncoding) throws {
        let whole = try WireFormat.encode(transaction(seed: 7, changes: 12), as: encoding)
        var random = SplitMix(seed: 3)
        var refused = 0
        for _ in 0..<2000 {
            var payload = whole
            if Bool.random(using: &random) { payload.removeLast(Int.random(in: 1..<whole.count, using: &random)) }
            let place = payload.indices.randomElement(using: &random) ?? 0
            payload[place] = UInt8.random(in: 0...255, using: &random)
            // The byte that states the encoding stays.
            payload[0] = whole[0]
            let expected = try? EncodedChanges.read(payload).header
            let found = try? EncodedChanges.read(
                .stored(Pieces(payload, size: Int.random(in: 1..<200, using: &random))),
                maxChangeBytes: Self.unlimited
            ).header
            #expect(found == expected)
            if found == nil { refused += 1 }
        }
        #expect(refused > 300 && refused < 2000)
    }

    // MARK: Hostile payloads

    private enum Endless: CaseIterable {
        /// Lengths that no payload has, and what never ends.
        case change, header, jsonMember, jsonChange, jsonName, spaces

        func pieces(_ header: [UInt8]) -> Pieces {
            let fill = [UInt8](repeating: self == .spaces ? 0x20 : 0x61, count: 1000)
            let json = Array("{\"format\":1,".utf8)
            let length: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]
            let first =
                switch self {
                case .change: header + [8 << 3 | 2] + length
                case .header: header + [7 << 3 | 2] + length
                case .jsonMember: json + Array("\"author\":\"".utf8)
                case .jsonChange: json + Array("\"changes\":[{\"entity\":\"".utf8)
                case .jsonName: json + Array("\"".utf8)
                case .spaces: json
                }
            return Pieces(endless: { $0 == 0 ? first : fill })
        }
    }

    @Test(arguments: Endless.allCases) private func readingEndsAtTheLimits(_ what: Endless) throws {
        let header = try WireFormat.encode(transaction(seed: 1, changes: 1), as: .protobuf)
        let pieces = what.pieces(header)
        #expect(throws: WireError.self) {
            try EncodedChanges.read(.stored(pieces), maxChangeBytes: 100_000)
        }
        // A declared length is enough. What has none may take two MiB.
        let most = [.change, .header].contains(what) ? 1 : what == .jsonChange ? 300 : 3000
        #expect(pieces.readCount <= most)
    }

    @Test func aChangeLargerThanTheLimitIsRefused() throws {
        var whole = transaction(seed: 1, changes: 3)
        var column = WireColumn()
        column.name = "large"
        column.value.text = String(repeating: "x", count: 50_000)
        whole.changes[1].columns = [column]
        for encoding in WireEncoding.allCases {
            let payload = try WireFormat.encode(whole, as: encoding)
            #expect(throws: WireError.self) { try read(Pieces(payload, size: 1000), limit: 10_000) }
            #expect(try read(Pieces(payload, size: 1000), limit: 60_000) == whole)
        }
    }

    /// At each start, a node retries what it has quarantined.
    @Test func aQuarantinedChangeLargerThanTheLimitIsNotReadAsAWhole() throws {
        let pieces = Endless.change.pieces([])
        #expect(throws: WireError.self) { try DecodedTransaction(.stored(pieces), maxChangeBytes: 100_000) }
        #expect(pieces.readCount == 1)
    }

    /// The header has a limit of its own, whichever change comes after it.
    @Test(arguments: WireEncoding.allCases, [0, 1, 2])
    func aChangeMayExceedTheLimitForTheHeader(encoding: WireEncoding, place: Int) throws {
        var whole = transaction(seed: 1, changes: 3)
        var column = WireColumn()
        column.name = "large"
        column.value.text = String(repeating: "x", count: 2 << 20)
        whole.changes[place].columns = [column]
        let payload = try WireFormat.encode(whole, as: encoding)
        #expect(try read(Pieces(payload, size: 100_000), limit: 3 << 20) == whole)
    }

    @Test(arguments: WireEncoding.allCases)
    func aChangeOfExactlyTheLimitIsReadWhereverItIsCut(encoding: WireEncoding) throws {
        var whole = transaction(seed: 1, changes: 3)
        var column = WireColumn()
        column.name = "large"
        column.value.text = String(repeating: "x", count: 200)
        for index in whole.changes.indices { whole.changes[index].columns = index == 1 ? [column] : [] }
        let payload = try WireFormat.encode(whole, as: encoding)
        let limit = try EncodedChanges.read(payload).changes.largest.bytes
        for size in 1...payload.count { #expect(try read(Pieces(payload, size: size), limit: limit) == whole) }
    }

    /// Empty arrays of changes are a part of the header.
    @Test func emptyArraysOfChangesDontExceedTheLimitForTheHeader() throws {
        let pieces = Pieces(endless: { index in
            Array((index == 0 ? "{\"format\":1,\"changes\":[" : "],\"changes\":[").utf8)
        })
        #expect(throws: WireError.self) { try EncodedChanges.read(.stored(pieces), maxChangeBytes: 100_000) }
        #expect(pieces.readCount < 200_000)
    }

    // MARK: Nodes

    private static let many = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
        INSERT INTO setting SELECT 'k' || i, hex(zeroblob(20 + i)) FROM n
        """

    @Test(arguments: WireEncoding.allCases, [false, true])
    func sealedAndSignedChunksMayComeTwiceAndInDisorder(encoding: WireEncoding, isProtected: Bool) throws {
        let lab = try Lab()
        let (keys, key) = (try TestKeys("k1"), NodeSigningKey())
        let a = try lab.node("a", isProtected ? MessageSecurity(keys: keys, signingKey: key) : MessageSecurity()) {
            $0.maxMessageBytes = 1000
            $0.encoding = encoding
        }
        try a.foreignWrite(Self.many)
        try a.publish()
        let sent = try messages(lab.bus)
        #expect(sent.count > 10)
        let node = a.engine.node.uuid
        let reader = MessageSecurity(keys: keys) { $0.origins = [node: [key.publicKey]] }
        for seed in 1...5 as ClosedRange<UInt64> {
            var random = SplitMix(seed: seed)
            let b = try lab.node("b\(seed)", isProtected ? reader : MessageSecurity())
            let report = try b.deliver((sent + sent).shuffled(using: &random))
            #expect(report.applied == 1 && report.quarantined == 0)
            #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
            // Chunks that come after their transaction are not kept.
            #expect(try b.chunks() == [])
        }
    }

    /// Chunks of older nodes say neither the size of the transaction nor a checksum.
    @Test func chunksOfOlderNodesFormTheirTransaction() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many)
        try a.publish()
        let old = try lab.messages().map { message in
            var message = message
            message.headers.removeAll { ["martlet-size", "martlet-whole-crc32"].contains($0.name) }
            return message
        }
        let b = try lab.node("b")
        #expect(try b.receive(old.reversed()).applied == 1)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try b.chunks() == [])
    }

    @Test func aFailureInTheMiddleLeavesAllChunksAndNoRow() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many.replacing("20 + i", with: "2000 + i"))
        try a.publish()
        let messages = try lab.messages()
        let b = try lab.node("b")
        try b.receive(Array(messages.dropLast()))
        func limit(_ pages: String) throws {
            try b.engine.session.connection.database.writeWithoutTransaction { db in
                let count = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
                try db.execute(sql: "PRAGMA max_page_count = \(pages == "few" ? count + 10 : 1_000_000)")
            }
        }
        // The file is full after some rows.
        try limit("few")
        #expect(throws: StoreError.self) { try b.receive(messages.suffix(1)) }
        #expect(try b.keys() == [])
        #expect(try b.chunks().count == messages.count - 1)
        try limit("many")
        #expect(try b.receive(messages.suffix(1)).applied == 1)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try b.chunks() == [])
    }

    /// SQLite finalizes a statement where it is released. Whoever applies a batch does that on no queue.
    @Test func chunksKeepNoStatementOfTheirConnection() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many)
        try a.publish()
        let messages = try lab.messages()
        let last = try #require(messages.last)
        let b = try lab.node("b")
        try b.receive(messages.dropLast())
        let envelope = try WireEnvelope(last)
        let queue = try DatabaseQueue(path: b.path)
        let stored = try queue.inDatabase { db in
            try StoredChunks(
                db, envelope.transaction, count: messages.count, arrived: (messages.count - 1, last.payload))
        }
        let first = try queue.inDatabase { _ in try stored?.next() }
        #expect(first == messages[0].payload)
        // SQLite refuses while there is a statement.
        try queue.close()
        #expect(stored?.count == messages.reduce(0) { $0 + $1.payload.count })
    }

    @Test func aTransactionWithAFutureClockIsKeptWithoutItsChunks() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many)
        try a.publish()
        let clock = TestClock(SQLiteClock.milliseconds - 600_000)
        let b = try lab.node("b", clock: clock)
        #expect(try b.receive(lab.messages().reversed()).deferred == 1)
        #expect(try b.keys() == [])
        #expect(try b.chunks() == [])
        #expect(try partCount(b) > 1)
        try b.restart()
        clock.pass(.seconds(1200))
        #expect(try b.engine.releaseDeferred() == 1)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try partCount(b) == 0)
    }

    @Test func aDeferredTransactionThatLacksAPartIsNeitherAppliedNorQuarantined() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many)
        try a.publish()
        let clock = TestClock(SQLiteClock.milliseconds - 600_000)
        let b = try lab.node("b", clock: clock)
        try b.receive(lab.messages())
        let count = try partCount(b)
        try b.store.writeOwnTables { try $0.execute(sql: "DELETE FROM _martlet_payload_parts WHERE part = 1") }
        clock.pass(.seconds(1200))
        #expect(throws: StoreError.self) { try b.engine.releaseDeferred() }
        #expect(try b.keys() == [])
        #expect(try partCount(b) == count - 1)
        #expect(try b.store.quarantined().isEmpty)
    }

    /// How many parts of payloads wait, or are quarantined.
    private func partCount(_ node: TestNode) throws -> Int {
        try node.store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM _martlet_payload_parts") ?? 0 }
    }

    /// Earlier versions kept the payload of a transaction that waits as a whole, however large.
    @Test func whatWaitsInAStoreOfAnEarlierFormatIsApplied() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many)
        try a.publish()
        let messages = try lab.messages()
        let clock = TestClock(SQLiteClock.milliseconds - 600_000)
        let b = try lab.node("b", clock: clock)
        let c = try lab.node("c")
        #expect(try b.receive(messages).deferred == 1)
        try c.receive(messages.dropLast())
        let payload = messages.flatMap(\.payload).map { String(format: "%02x", $0) }.joined()
        try b.foreignWrite("UPDATE _martlet_deferred SET payload = x'\(payload)'; \(OldFormat.sql(sync: 14))")
        try c.foreignWrite(OldFormat.sql(sync: 14))
        for node in [b, c] { try node.restart() }
        clock.pass(.seconds(1200))
        #expect(try b.engine.releaseDeferred() == 1)
        #expect(try c.receive(messages.suffix(1)).applied == 1)
        #expect(try c.chunks() == [])
        for node in [b, c] { #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(node.store)) }
    }

    @Test func aRefusedTransactionIsQuarantinedInPartsUntilItIsDiscarded() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many)
        try a.publish()
        let messages = try lab.messages()
        let payload = messages.flatMap(\.payload)
        var newer = try WireFormat.decode(payload)
        newer.format = WireFormat.version + 1
        let bytes = try WireFormat.encode(newer, as: .protobuf)
        #expect(bytes.count == payload.count)
        let size = messages[0].payload.count
        let chunks = messages.enumerated().map { index, message in
            var message = message
            message.payload = Array(bytes[(index * size)..<min(bytes.count, (index + 1) * size)])
            return message
        }
        let b = try lab.node("b")
        #expect(try b.receive(chunks).quarantined == 1)
        #expect(try b.chunks() == [])
        #expect(try partCount(b) > 1)
        let letter = try #require(try b.store.quarantined().first)
        #expect(letter.keptBytes == bytes.count && letter.payloadBytes == bytes.count && letter.digest == nil)
        #expect(try b.engine.retryQuarantined().kept == 1)
        let used = try b.withContext { db, context in try DeadLetters(db, context).usedBytes() }
        #expect(used > bytes.count)
        try b.store.writeOwnTables { _ = try DeadLetters.take($0, letter.id) }
        #expect(try partCount(b) == 0)
        // The transaction itself still arrives.
        #expect(try b.receive(messages).applied == 1)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    @Test func payloadsAreComparedHoweverTheyAreCut() throws {
        let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 * 7) }
        var other = bytes
        other[4321] ^= 1
        let whole = TransactionPayload.whole(bytes)
        for size in [1, 13, 4999, 5000] {
            let pieces = TransactionPayload.stored(Pieces(bytes, size: size))
            #expect(try pieces.equals(whole) && whole.equals(pieces))
            #expect(try pieces.equals(.stored(Pieces(bytes, size: 17))))
            #expect(try !pieces.equals(.whole(other)) && !pieces.equals(.whole(Array(bytes.dropLast()))))
            #expect(try pieces.digest() == KeptMessage.digest(of: bytes))
            #expect(try pieces.beginning(100) == Array(bytes.prefix(100)))
            #expect(try pieces.joined() == bytes)
        }
    }

    /// Among many rows that come, a few are waited for.
    @Test func aRowAmongManyBringsWhatWaitsForIt() throws {
        let lab = try Lab()
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try a.foreignWrite(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10500)
            INSERT INTO setting SELECT 'k' || i, i FROM n
            """)
        try exchange([a, b])
        try b.write("UPDATE setting SET value = 'of b' WHERE key = 'k7'")
        try b.publish()
        func messages(of node: TestNode) throws -> [IncomingMessage] {
            try lab.messages().filter { $0.key == Array(node.engine.node.description.utf8) }
        }
        // The update waits for its row.
        try c.receive(messages(of: b), partition: 8)
        #expect(try c.parked() == ["missingRow"])
        try c.receive(messages(of: a))
        #expect(try c.parked() == [])
        #expect(try c.rows("SELECT value FROM setting WHERE key = 'k7'") == ["of b"])
        #expect(try c.keys().count == 10_500)
    }
}
