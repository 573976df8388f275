import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Out-of-range numbers in anything that may be written to a topic: nodes refuse them on input, or clamp them to their
/// range.
@Suite struct HostileValueTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab()
        a = try lab.node("a")
        b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        try a.publish()
    }

    /// The message after a change of its transaction.
    private func changing(
        _ message: IncomingMessage, _ change: (inout WireTransaction) -> Void
    ) throws -> IncomingMessage {
        var message = message
        var transaction = try WireFormat.decode(message.payload)
        change(&transaction)
        message.payload = try WireFormat.encode(transaction, as: .protobuf)
        return message
    }

    /// The node continues to sync, and everything in the quarantine can be discarded.
    private func expectAlive(_ node: TestNode) throws {
        for message in try node.store.quarantined() {
            #expect(try node.store.discardQuarantined(message.id) != nil)
        }
        #expect(try node.store.quarantined() == [])
        try a.write("INSERT OR REPLACE INTO setting VALUES ('alive', 1)")
        try a.publish()
        try node.restart()
        try node.consume()
        #expect(try node.rows("SELECT key FROM setting ORDER BY key") == ["alive", "k", "l"])
        #expect(try node.gaps() == [])
        let status = try SyncStatus.read(node.store)
        #expect(status.origins.map(\.applied) == [3])
    }

    // MARK: Sequences

    @Test(arguments: [.max, .max - 1, 1 << 62, 1 << 53] as [Int64])
    func p51AnOutOfRangeSequenceStopsNothing(sequence: Int64) throws {
        let messages = try lab.messages()
        var garbage = messages[0]
        garbage.headers = garbage.headers.filter { $0.name != "martlet-sequence" }
        garbage.headers.append(MessageHeader("martlet-sequence", "\(sequence)"))
        var valid = try changing(garbage) { $0.sequence = UInt64(sequence) }
        garbage.payload = [1, 2, 3]
        try lab.send([garbage, valid, garbage])
        valid.headers = messages[0].headers
        try lab.send([valid])
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["k", "l"])
        #expect(try b.store.quarantined().count == 3)
        try expectAlive(b)
    }

    @Test func p51TheGreatestSequenceIsAcceptedAndCanBeDiscarded() throws {
        let greatest = InputBounds.greatest
        var garbage = try lab.messages()[0]
        garbage.headers = garbage.headers.filter { $0.name != "martlet-sequence" }
        garbage.headers.append(MessageHeader("martlet-sequence", "\(greatest)"))
        let valid = try changing(garbage) {
            $0.sequence = UInt64(greatest)
            $0.changes[0].entity = "note"
        }
        garbage.payload = [1]
        try b.receive([garbage])
        #expect(try b.gaps() == [1...(greatest - 1), greatest...greatest])
        #expect(try b.store.discardQuarantined(1)?.closedGap == true)
        #expect(try b.gaps() == [1...(greatest - 1)])
        #expect(try b.receive([valid, garbage]).duplicates == 2)
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["k", "l"])
    }

    /// What an earlier version stored from such a message: the last sequence of the origin, the gaps, and the read
    /// offset.
    @Test(arguments: [true, false]) func p51AStoreWithAnOutOfRangeSequenceIsRepaired(isApplied: Bool) throws {
        try b.consume()
        let own = isApplied ? "" : "INSERT INTO _martlet_gaps SELECT id, \(Int64.max), \(Int64.max) FROM origin;"
        try b.foreignWrite(
            """
            CREATE TEMP TABLE origin AS SELECT id FROM _martlet_nodes WHERE uuid = x'\(hex(a))';
            INSERT INTO _martlet_gaps SELECT id, 3, \(Int64.max - 1) FROM origin;
            \(own)
            INSERT INTO _martlet_members SELECT id, \(Int64.max), -1, 0 FROM origin;
            UPDATE _martlet_meta SET value = \(Int64.max) WHERE key GLOB 'origin/*';
            UPDATE _martlet_meta SET sequence = \(Int64.max), at = at WHERE key GLOB 'offset/*';
            INSERT INTO _martlet_meta(key, value, at) VALUES ('offset/0/other', \(Int64.min), \(Int64.min));
            INSERT INTO _martlet_meta(key, value) VALUES ('known_collected', -1);
            UPDATE _martlet_meta SET value = -1 WHERE key = 'clock';
            INSERT INTO _martlet_chunks VALUES (x'\(hex(a))', \(Int64.max), 0, 2, '', x'00');
            INSERT INTO _martlet_quarantine(topic, partition, offset, reason, headers, payload, since) VALUES
              ('t', 0, 0, '', 'martlet-origin=\(a.engine.node)' || char(10) || 'martlet-sequence=\(Int64.max)', x'', 0);
            DROP TABLE _martlet_ingest;
            UPDATE _martlet_meta SET value = 9 WHERE key = 'sync_format';
            """)
        // No agent runs yet, so this happens before the repair.
        #expect(try b.store.discardQuarantined(1) != nil)
        try b.restart()
        #expect(try b.gaps() == [])
        #expect(try b.chunks() == [])
        for key in [SyncMeta.clock, SyncMeta.knownCollected] { #expect(try b.value(named: key) ?? 0 >= 0, "\(key)") }
        #expect(try b.members().isEmpty)
        #expect(try b.engine.offsets(topic: "other") == [])
        try expectAlive(b)
    }

    private func hex(_ node: TestNode) -> String {
        Hex.text(node.engine.node.bytes)
    }

    // MARK: Times

    @Test(arguments: [.min, .max, -281_474_976_710_657] as [Int64])
    func p52AnOutOfRangeTimeIsRefused(time: Int64) throws {
        let messages = try lab.messages()
        let bad = try changing(messages[0]) { $0.timestampMs = time }
        try lab.rewrite { _ in [bad, messages[1], messages[0]] }
        let report = try b.consume()
        #expect(report.quarantined == 1 && report.applied == 2)
        try expectAlive(b)
    }

    @Test(arguments: [.max, 1 << 63] as [UInt64]) func p52AnOutOfRangeClockIsRefusedAndNotPending(clock: UInt64)
        throws
    {
        let messages = try lab.messages()
        let bad = try changing(messages[0]) { $0.hlc = clock }
        let late = try changing(messages[0]) { $0.changes[0].clockStep = clock }
        try lab.rewrite { _ in [bad, late, messages[1], messages[0]] }
        let report = try b.consume()
        #expect(report.quarantined == 2 && report.applied == 2 && report.deferred == 0)
        try expectAlive(b)
    }

    @Test(arguments: [Int64.min, Int64.max]) func p52AnOutOfRangeBrokerTimestampBreaksNothing(time: Int64) throws {
        let message = IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 0), key: [], headers: [], payload: [], timestamp: time,
            isBrokerTimestamp: true)
        var progress = ConsumerProgress(startedAt: .now)
        progress.ends[0] = 1
        progress.appended[0] = message.timestamp
        let lag = progress.lags(at: .now, milliseconds: SQLiteClock.milliseconds)[0].time
        #expect(lag >= .zero && lag < .seconds(86_400))
        try b.receive([message])
        var report = ApplyReport()
        report.noteOwn(made: 0, appended: message.timestamp, read: SQLiteClock.milliseconds)
    }

    // MARK: Checks

    private static let headers: [@Sendable (inout WireSnapshotHeader) -> Void] = [
        { $0.origins = [origin(.max, [(1 << 63, .max)])] },
        { $0.origins = [origin(.max, [(3, 1 << 63 - 1)])] },
        { $0.origins = [origin(.max, [(1, 1), (1 << 63 - 1, 1 << 63 - 1)])] },
        { $0.origins = [origin(.max, [])] },
        { $0.origins = [origin(UInt64(InputBounds.greatest), [(1, UInt64(InputBounds.greatest))])] },
        { $0.origins = [origin(9, [(3, 2)])] },
        { $0.hlc = .max },
        { $0.hlc = 0 },
        { $0.collected = .max },
        { $0.madeMs = .min },
        { $0.positions = [position(0, .min, .max, .min)] },
        { $0.positions = [position(.min, .max, .max, .max)] },
        { $0.partitionCount = .max },
    ]

    private static let nodeOfHeaders = NodeID(UUID())

    private static func origin(_ applied: UInt64, _ gaps: [(UInt64, UInt64)]) -> WireSnapshotOrigin {
        var origin = WireSnapshotOrigin()
        origin.node = Data(nodeOfHeaders.bytes)
        origin.applied = applied
        origin.gaps = gaps.map { first, last in
            var range = WireSnapshotRange()
            (range.first, range.last) = (first, last)
            return range
        }
        return origin
    }

    private static func position(_ partition: Int32, _ next: Int64, _ sequence: UInt64, _ appended: Int64)
        -> WireSnapshotPosition
    {
        var position = WireSnapshotPosition()
        position.partition = partition
        position.next = next
        position.origin = Data(nodeOfHeaders.bytes)
        position.sequence = sequence
        position.appendedMs = appended
        return position
    }

    private static let checks: [@Sendable (inout WireCheckMessage) -> Void] = [
        { $0.step = .max },
        { $0.ignored = .max },
        { $0.digests = [entity(16, 1, 1 << 63 - 1)] },
        { $0.digests = [entity(4096, 1, .max)] },
        { $0.digests = [entity(1, .max, 1), entity(1, .max, 1)] },
        { $0.digests = Array(repeating: entity(0, 0, 0), count: 100_000) },
        { $0.covered = [entity(1, 8, 1), entity(1, 8, 1)] },
        {
            $0.covered = [entity(1, 8, 1)]
            $0.digests = [entity(1, 9, 1)]
        },
        { $0.digests = [entity(1, 0, 0, name: String(repeating: "x", count: 100_000))] },
        { $0.digests = (0..<5000).map { entity(0, 0, 0, name: "t\($0)") } },
    ]

    /// The indices of checks of which only single ranges are invalid: only those ranges are ignored.
    private static let checksInPart = [2, 3, 7]

    private static func entity(_ count: Int, _ level: UInt32, _ rows: UInt64, name: String = "setting")
        -> WireCheckEntity
    {
        var entity = WireCheckEntity()
        entity.name = name
        entity.ranges = (0..<count).map { index in
            var range = WireCheckRange()
            range.level = level
            range.prefix = UInt32(index % 16) << 28
            range.rows = rows
            range.digest = Data(count: rows == 0 ? 0 : 16)
            return range
        }
        return entity
    }

    @Test(arguments: headers.indices) func p53AnInvalidHeaderOfACheckStopsNoNode(index: Int) throws {
        try expectPassedOver { Self.headers[index](&$0.header) }
    }

    @Test(arguments: checks.indices) func p53AnInvalidCheckStopsNoNode(index: Int) throws {
        try expectPassedOver(ignored: Self.checksInPart.contains(index) ? 0 : 2, Self.checks[index])
    }

    /// - Parameter ignored: how many of the two messages are refused as a whole. If it is nil, the number isn't
    ///   checked.
    private func expectPassedOver(ignored: Int? = nil, _ change: (inout WireCheckMessage) -> Void) throws {
        let checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
        let checkers = try [a, b].map { node in
            let antiEntropy = AntiEntropy(engine: node.engine, bus: checks, topic: "t")
            _ = try antiEntropy.connect()
            return CheckedNode(node: node, antiEntropy: antiEntropy)
        }
        try b.consume()
        for step: UInt32 in 0...1 {
            var wire = WireCheckMessage()
            wire.check = Data(NodeID(UUID()).bytes)
            wire.step = step
            wire.header.maker = Data(NodeID(UUID()).bytes)
            wire.header.topic = "t"
            wire.header.hlc = HybridTime(milliseconds: SQLiteClock.milliseconds).rawValue
            wire.digests = [Self.entity(1, 0, 0)]
            wire.contents = WireSnapshotContents()
            change(&wire)
            let producer = try checks.makeProducer { _ in }
            try producer.send(try AntiEntropyFormat.message(wire))
            producer.close()
        }
        try talk(checkers)
        if let ignored { for checked in checkers { #expect(checked.progress.ignored == ignored) } }
        // The nodes can still compare and repair.
        try checkers[1].damage("DELETE FROM setting WHERE key = 'k'")
        try check(checkers)
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["k", "l"])
        for checked in checkers { #expect(checked.progress.begun <= 1) }
    }

    /// A value without a time counts as the earliest: no other time is earlier.
    @Test func p53TwoValuesWithoutATimeStopNothing() throws {
        try b.consume()
        let checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
        let checkers = [a, b].map { node in
            CheckedNode(node: node, antiEntropy: AntiEntropy(engine: node.engine, bus: checks, topic: "t"))
        }
        for checked in checkers {
            _ = try checked.antiEntropy.connect()
            let side = try checked.side("setting")
            _ = try checked.node.store.audit()
            try checked.damage("UPDATE \(side) SET hlc = 0; DELETE FROM _martlet_recent")
        }
        try checkers[1].damage("UPDATE setting SET value = 7 WHERE key = 'k'")
        try check(checkers)
        try check([checkers[1], checkers[0]])
        try expectAlive(b)
    }

    // MARK: Snapshots

    @Test(arguments: headers.indices) func p54AnInvalidHeaderOfASnapshotStopsNoNode(index: Int) throws {
        let lab = try SnapshotLab(partitions: 1)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a, b])
        let maker = NodeID(UUID())
        let id = NodeID(UUID())
        var framer = SnapshotFramer(snapshot: id, maker: maker, slot: 0, maxBytes: 10_000)
        var header = WireSnapshotHeader()
        header.snapshot = Data(id.bytes)
        header.maker = Data(maker.bytes)
        header.topic = "t"
        header.partitionCount = 1
        header.hlc = HybridTime(milliseconds: SQLiteClock.milliseconds).rawValue
        Self.headers[index](&header)
        let first = try SnapshotFormat.encode(.header(header))
        var trailer = WireSnapshotTrailer()
        trailer.parts = 1
        trailer.digest = Data(SnapshotFormat.digest([], first))
        let producer = try lab.snapshots.makeProducer { _ in }
        for message in framer.messages(first, isLast: false)
            + framer.messages(try SnapshotFormat.encode(.trailer(trailer)), isLast: true)
        {
            try producer.send(message)
        }
        producer.close()
        // A keeper looks at the snapshot, and a late joiner needs one.
        var configuration = SnapshotConfiguration()
        configuration.minTransactions = 1
        configuration.interval = .milliseconds(1)
        let keeper = SnapshotKeeper(
            engine: a.engine,
            snapshots: SnapshotTopic(
                engine: a.engine, bus: lab.snapshots, topic: "t", configuration: configuration), topic: "t")
        _ = try keeper.step()
        try a.makeSnapshot()
        try lab.prune()
        let c = try lab.node("c")
        try c.consume()
        #expect(try c.rows("SELECT key FROM setting") == ["k"])
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        try exchange([a, b, c])
        #expect(try c.rows("SELECT key FROM setting ORDER BY key") == ["k", "l"])
    }

    /// The store has taken its positions from such a header.
    @Test func p54AStoreWhosePositionsCoverEverythingStillTakesItsTurn() {
        var configuration = SnapshotConfiguration()
        configuration.minTransactions = 1
        let election = SnapshotElection(node: NodeID(UUID()), configuration: configuration, since: .distantPast)
        let standing = SnapshotElection.Standing(
            positions: Dictionary(uniqueKeysWithValues: (0..<4000).map { ($0, InputBounds.greatest) }))
        #expect(election.isDue([], standing, now: .distantFuture))
    }

    @Test func p54AnOutOfRangeNumberOfASnapshotMessageIsIgnored() throws {
        let lab = try SnapshotLab(partitions: 1)
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a])
        let id = NodeID(UUID())
        let producer = try lab.snapshots.makeProducer { _ in }
        // In the fourth, only the number of messages is invalid.
        for (number, chunk, count, isKnown) in [
            ("9223372036854775807", "0/1", "9223372036854775807", false),
            ("0", "0/9223372036854775807", "1", false), ("0", "1/2", "2", false),
            ("0", "0/1", "9223372036854775807", true), ("4294967296", "0/2", "2", false),
        ] {
            var framer = SnapshotFramer(snapshot: id, maker: NodeID(UUID()), slot: 0, maxBytes: 10_000)
            for var message in framer.messages([1, 2, 3], isLast: true) {
                message.headers.removeAll { ["martlet-number", "martlet-count"].contains($0.name) }
                message.headers += [
                    MessageHeader("martlet-number", number), MessageHeader("martlet-chunk", chunk),
                    MessageHeader("martlet-count", count),
                ]
                try producer.send(message)
                let envelope = SnapshotEnvelope(
                    IncomingMessage(
                        position: PartitionPosition(partition: 0, offset: 0), key: message.key,
                        headers: message.headers, payload: message.payload, timestamp: 0, isBrokerTimestamp: true))
                #expect((envelope != nil) == isKnown && envelope?.count == nil, "\(number) \(chunk) \(count)")
            }
        }
        producer.close()
        try a.makeSnapshot()
        try lab.prune()
        let c = try lab.node("c")
        try c.consume()
        #expect(try c.rows("SELECT key FROM setting") == ["k"])
    }
}
