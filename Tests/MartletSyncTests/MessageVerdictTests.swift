import Foundation
import MartletSync
import MartletTestSupport
import Testing

/// What becomes of a message of the topic, decided without a store.
@Suite struct MessageVerdictTests {
    private static let own = NodeID(UUID())
    private static let other = NodeID(UUID())
    private let reader: DecodedMessage.Reader

    init() throws {
        reader = DecodedMessage.Reader(
            messageGuard: try MessageGuard(MessageSecurity()), topic: "notes", node: Self.own)
    }

    // MARK: Messages

    private func payload(of node: NodeID, _ sequence: Int64) throws -> [UInt8] {
        var transaction = WireTransaction()
        transaction.format = WireFormat.version
        transaction.origin = Data(node.bytes)
        transaction.sequence = UInt64(sequence)
        transaction.hlc = HybridTime(milliseconds: 1000).rawValue
        return try WireFormat.encode(transaction, as: .protobuf)
    }

    /// A transaction without changes, at offset 10.
    ///
    /// - Parameter chunkBytes: a smaller number cuts it into chunks, of which this is the first.
    private func incoming(
        from node: NodeID = Self.other, _ sequence: Int64 = 7, payload: [UInt8]? = nil, chunkBytes: Int = 1000
    ) throws -> IncomingMessage {
        let whole = try payload ?? self.payload(of: node, sequence)
        let chunker = Chunker(maxBytes: chunkBytes, node: node, encoding: .protobuf)
        let part = Array(whole[chunker.range(0, of: whole.count)])
        let sent = chunker.message(0, sequence: sequence, payload: part, size: whole.count)
        return IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 10), key: sent.key, headers: sent.headers,
            payload: sent.payload, timestamp: 5000, isBrokerTimestamp: true)
    }

    private func decoded(_ message: IncomingMessage) -> DecodedMessage {
        DecodedMessage.all([message], reader)[0]
    }

    /// How far the partition is read once this message was.
    private func after(_ message: DecodedMessage) -> ReadPositions.Offset {
        let envelope = try? message.envelope.get()
        return ReadPositions.Offset(
            next: message.message.position.offset + 1, origin: envelope?.origin, sequence: envelope?.sequence,
            appended: message.message.timestamp)
    }

    // MARK: Verdicts

    private struct Judged {
        var verdict: MessageVerdict
        /// The transactions of which the store was asked whether they are new.
        var asked: [WireEnvelope] = []

        var name: String {
            switch verdict {
            case .seen: "seen"
            case .rewound: "rewound"
            case .probe: "probe"
            case .unreadable(let error): "unreadable: \(error)"
            case .unproven(let envelope, let error): "unproven \(envelope.sequence): \(error)"
            case .own(let envelope): "own \(envelope.sequence)"
            case .duplicate: "duplicate"
            case .rejected(let envelope, let error): "rejected \(envelope.sequence): \(error)"
            case .chunk(let chunk, let envelope): "chunk \(envelope.sequence): \(chunk.index) of \(chunk.count)"
            case .transaction(let transaction, let envelope):
                "transaction \(envelope.sequence) = \(transaction.sequence)"
            }
        }
    }

    private func judge(
        _ message: DecodedMessage, stored: ReadPositions.Offset = ReadPositions.Offset(next: 10),
        isRewound: Bool = false, isNew: Bool = true
    ) -> Judged {
        var asked: [WireEnvelope] = []
        let verdict = MessageVerdict.judge(message, stored: stored, isRewound: isRewound, node: Self.own) { envelope in
            asked.append(envelope)
            return isNew
        }
        return Judged(verdict: verdict, asked: asked)
    }

    private func judge(_ message: IncomingMessage, isNew: Bool = true) -> Judged {
        judge(decoded(message), isNew: isNew)
    }

    // MARK: What a message carries

    @Test func aNewTransactionIsTaken() throws {
        let judged = try judge(incoming())
        #expect(judged.name == "transaction 7 = 7")
        #expect(judged.asked == [WireEnvelope(origin: Self.other, sequence: 7)])
    }

    @Test func aNewChunkIsTaken() throws {
        let count = try (payload(of: Self.other, 7).count + 9) / 10
        #expect(try judge(incoming(chunkBytes: 10)).name == "chunk 7: 0 of \(count)")
    }

    @Test func aMessageWithoutAnOriginCanNotBeRead() throws {
        var message = try incoming()
        message.headers.removeAll { $0.name == WireHeader.origin }
        let judged = judge(message)
        #expect(judged.name == "unreadable: The message has no valid \(WireHeader.origin) header.")
        #expect(judged.asked == [])
    }

    /// A bus that can't read a batch says why, and has no headers.
    @Test func aMessageThatTheBusCanNotReadSaysWhy() {
        var message = IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 10), key: [], headers: [], payload: [],
            timestamp: -1, isBrokerTimestamp: false)
        message.problem = "a damaged batch"
        #expect(judge(message).name == "unreadable: a damaged batch")
    }

    @Test func aProbeIsNotQuarantined() {
        let probe = OutgoingMessage.probe
        let message = IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 10), key: probe.key, headers: probe.headers,
            payload: probe.payload, timestamp: 5000, isBrokerTimestamp: true)
        #expect(judge(message).name == "probe")
    }

    @Test func aDamagedTransactionStaysMissing() throws {
        var message = try incoming()
        message.payload[0] ^= 1
        #expect(judge(message).name == "rejected 7: Payload checksum mismatch.")
        message = try incoming(chunkBytes: 10)
        message.payload[0] ^= 1
        #expect(judge(message).name == "rejected 7: Payload checksum mismatch.")
    }

    @Test func aTransactionThatCanNotBeDecodedStaysMissing() throws {
        let judged = try judge(incoming(payload: []))
        #expect(judged.name == "rejected 7: The payload has no format version.")
        #expect(judged.asked.count == 1)
    }

    // MARK: Deduplication and echo suppression

    @Test func aTransactionThatHasArrivedIsADuplicate() throws {
        #expect(try judge(incoming(), isNew: false).name == "duplicate")
        #expect(try judge(incoming(chunkBytes: 10), isNew: false).name == "duplicate")
    }

    /// A damaged copy of what has arrived already is no reason to quarantine anything.
    @Test func aDamagedDuplicateIsADuplicate() throws {
        var message = try incoming()
        message.payload[0] ^= 1
        #expect(judge(message, isNew: false).name == "duplicate")
    }

    @Test(arguments: [10, 1000]) func aMessageOfThisNodeIsNeverApplied(chunkBytes: Int) throws {
        let judged = try judge(incoming(from: Self.own, 3, chunkBytes: chunkBytes))
        #expect(judged.name == "own 3")
        #expect(judged.asked == [])
    }

    /// Looking an origin up makes it known, and a forged message must not do that.
    @Test(arguments: [false, true]) func theStoreIsNotAskedAboutAMessageThatIsNotProven(isOwn: Bool) throws {
        var message = try incoming(from: isOwn ? Self.own : Self.other)
        message.problem = "forged"
        for isNew in [true, false] {
            let judged = judge(message, isNew: isNew)
            #expect(judged.name == "unproven 7: forged")
            #expect(judged.asked == [])
        }
    }

    @Test func whatTheStoreThrowsIsPassedOn() throws {
        let message = try decoded(incoming())
        #expect(throws: BusError.self) {
            _ = try MessageVerdict.judge(
                message, stored: ReadPositions.Offset(), isRewound: false, node: Self.own
            ) { _ in throw BusError(.other, "no", isRetriable: false) }
        }
    }

    // MARK: Positions

    @Test func aMessageBeforeTheStoredOffsetIsSeen() throws {
        let message = try decoded(incoming())
        // Whatever the message after it was.
        let judged = judge(message, stored: ReadPositions.Offset(next: 12, origin: Self.own, sequence: 1, appended: 1))
        #expect(judged.name == "seen")
        #expect(judged.asked == [])
    }

    @Test func theLastReadMessageIsSeen() throws {
        let message = try decoded(incoming())
        var stored = after(message)
        #expect(judge(message, stored: stored).name == "seen")
        // A store that an earlier version wrote doesn't have the time.
        stored.appended = nil
        #expect(judge(message, stored: stored).name == "seen")
    }

    @Test func anotherMessageAtTheLastReadOffsetMeansAnotherLog() throws {
        let message = try decoded(incoming())
        for differs: (inout ReadPositions.Offset) -> Void in [
            { $0.origin = Self.own }, { $0.origin = nil }, { $0.sequence = 6 }, { $0.sequence = nil },
            { $0.appended = 4999 },
        ] {
            var stored = after(message)
            differs(&stored)
            let judged = judge(message, stored: stored)
            #expect(judged.name == "rewound")
            #expect(judged.asked == [])
        }
    }

    @Test func nothingOfARewoundPartitionIsTaken() throws {
        let judged = try judge(decoded(incoming()), isRewound: true)
        #expect(judged.name == "rewound")
        #expect(judged.asked == [])
    }

    // MARK: Any message

    /// - Returns: a message with random properties, and whether it is proven.
    private func anything(_ random: inout SplitMix) throws -> (message: DecodedMessage, isProven: Bool) {
        var message = try incoming(
            from: random.once(in: 3) ? Self.own : Self.other, Int64(1 + random.below(3)),
            payload: random.once(in: 6) ? random.bytes(30) : nil, chunkBytes: random.pick([10, 1000]))
        message.position.offset = Int64(8 + random.below(5))
        message.timestamp = Int64(random.below(3))
        if random.once(in: 4) { message.payload[0] ^= 1 }
        if random.once(in: 8) { message.headers.removeAll { $0.name == WireHeader.origin } }
        let isProven = !random.once(in: 5)
        if !isProven { message.problem = "forged" }
        return (decoded(message), isProven)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>) func anyMessageIsTakenAtMostOnceAndOnlyIfProvenAndForeign(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        for _ in 0..<100 {
            let (message, isProven) = try anything(&random)
            let envelope = try? message.envelope.get()
            let origin: NodeID? = random.pick([Self.own, Self.other, nil])
            let stored = ReadPositions.Offset(
                next: Int64(8 + random.below(5)), origin: origin, sequence: origin.map { _ in Int64(random.below(3)) },
                appended: random.pick([nil, 0, 1, 2]))
            let isRewound = random.once(in: 6)
            let isNew = random.once(in: 2)
            let judged = judge(message, stored: stored, isRewound: isRewound, isNew: isNew)

            let isForeign = isProven && envelope.map { $0.origin != Self.own } ?? false
            let isUnread = !isRewound && message.message.position.offset >= stored.next
            #expect(judged.asked == (isUnread && isForeign ? [envelope].compactMap { $0 } : []))
            switch judged.verdict {
            case .seen, .rewound: #expect(!isUnread)
            case .probe: Issue.record("None of the messages is a probe.")
            case .unreadable: #expect(isUnread && envelope == nil)
            case .unproven: #expect(isUnread && envelope != nil && !isProven)
            case .own: #expect(isUnread && isProven && envelope?.origin == Self.own)
            case .duplicate: #expect(isUnread && isForeign && !isNew)
            case .rejected: #expect(isUnread && isForeign && isNew)
            case .chunk, .transaction: #expect(isUnread && isForeign && isNew && message.isIntact)
            }
            guard isUnread else { continue }
            // Read a second time, it is recognized by its position alone.
            let again = judge(message, stored: after(message), isNew: isNew)
            #expect(again.name == "seen" && again.asked == [])
        }
    }
}
