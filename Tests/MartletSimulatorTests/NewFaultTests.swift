import MartletSimulator
import MartletSync
import Testing

/// Faults that are off by default: each by itself, with a check that it really occurs.
@Suite struct NewFaultTests {
    private func options(_ faults: Set<Fault>) -> SimulationOptions {
        var options = SimulationOptions()
        options.faults = faults
        return options
    }

    /// - Returns: all lines of the traces of these seeds, which all keep every guarantee.
    private func trace(_ faults: Set<Fault>, seeds: ClosedRange<UInt64>) throws -> [String] {
        let simulator = try Simulator(options: options(faults))
        return seeds.flatMap { seed in
            let report = simulator.run(seed: seed)
            #expect(report.failure == nil, "\(report.command())")
            #expect(report.faults.contains { Fault.off[$0] != nil }, "seed \(seed)")
            return report.trace
        }
    }

    @Test(arguments: [Fault.lostConnections, .controlRecords, .fewerPartitions, .lostSnapshots, .fork, .restamp])
    func aRunWithANewFaultAloneIsDecidedByItsSeed(_ fault: Fault) throws {
        let simulator = try Simulator(options: options([fault]))
        let first = simulator.run(seed: 3)
        let second = simulator.run(seed: 3)
        #expect(first.faults == [fault])
        #expect(first.trace == second.trace)
        #expect(first.hash == second.hash)
        #expect(first.command().contains("--faults \(fault.rawValue)"))
    }

    /// Otherwise the seeds in documents and tests would mean other runs.
    @Test func aNewFaultChangesNoPlanWithoutIt() {
        var all = SimulationOptions()
        all.faults = Set(Fault.allCases)
        var unchanged = 0
        for seed in 1...200 as ClosedRange<UInt64> {
            let standard = Plan(seed: seed, options: SimulationOptions())
            let more = Plan(seed: seed, options: all)
            #expect(standard.faults.isDisjoint(with: Fault.off.keys))
            guard more.faults.isDisjoint(with: Fault.off.keys) else { continue }
            unchanged += 1
            #expect(more.faults == standard.faults && more.partitionCount == standard.partitionCount)
            #expect(more.steps.map(\.seed) == standard.steps.map(\.seed))
            #expect(more.steps.map(\.action) == standard.steps.map(\.action))
        }
        #expect(unchanged > 20)
    }

    @Test func faultsBesideTheDefaultAreNamedInTheCommand() {
        var report = SimulationReport(seed: 1, options: SimulationOptions())
        #expect(!report.command().contains("--faults"))
        report.options.faults.formUnion([.fork, .controlRecords])
        #expect(report.command().contains("--faults default,control-records,fork "))
        report.options.faults = [.fork, .crash]
        #expect(report.command().contains("--faults crash,fork "))
    }

    private func append(_ count: Int, to topic: SimulatedTopic) {
        for number in 0..<count {
            topic.append(OutgoingMessage(key: [1], headers: [], payload: [UInt8(number)], tag: 0))
        }
    }

    /// Polls until the end of the partition is reported.
    private func read(_ consumer: any BusConsumer, maxCount: Int) throws -> (messages: [IncomingMessage], end: Int64?) {
        var messages: [IncomingMessage] = []
        for _ in 0..<100 {
            let batch = try consumer.poll(maxCount: maxCount, timeout: .zero)
            messages += batch.messages
            for case .endOfPartition(let end) in batch.events { return (messages, end.offset) }
        }
        return (messages, nil)
    }

    @Test func controlRecordsLeaveGapsInTheOffsets() throws {
        let topic = SimulatedTopic(partitionCount: 1, time: TrueTime(), tamper: nil)
        topic.controlRecords = SplitMix(seed: 5)
        append(30, to: topic)
        let high = topic.partitions[0].high
        #expect(high > 30 && high <= 60)
        let link = SimulatedLink(topic, queueLimit: 10)
        defer { withExtendedLifetime(link) {} }
        let consumer = try link.makeConsumer()
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        let all = try read(consumer, maxCount: 4)
        #expect(all.messages.map(\.payload) == (0..<30 as Range<UInt8>).map { [$0] })
        #expect(all.end == high)
        // Every offset can be a position, also one without a message.
        for offset in 0...high {
            try consumer.assign([PartitionPosition(partition: 0, offset: offset)])
            let rest = try read(consumer, maxCount: 7)
            #expect(rest.messages == all.messages.filter { $0.position.offset >= offset } && rest.end == high)
        }
        topic.prune(0, 10)
        #expect(topic.partitions[0].low == all.messages[10].position.offset)
        topic.forget(0, 5)
        #expect(topic.partitions[0].high == all.messages[25].position.offset)
        topic.prune(0, 15)
        #expect(topic.partitions[0].low == topic.partitions[0].high)
    }

    @Test func withoutControlRecordsOffsetsHaveNoGaps() throws {
        let topic = SimulatedTopic(partitionCount: 1, time: TrueTime(), tamper: nil)
        append(10, to: topic)
        topic.prune(0, 3)
        topic.forget(0, 2)
        let partition = topic.partitions[0]
        #expect(partition.low == 3 && partition.high == 8)
        #expect(partition.messages.map(\.position.offset) == [3, 4, 5, 6, 7])
    }

    @Test func aConnectionIsLostAfterAFewPollsAndNotRestored() throws {
        let topic = SimulatedTopic(partitionCount: 1, time: TrueTime(), tamper: nil)
        append(30, to: topic)
        let link = SimulatedLink(topic, queueLimit: 10)
        defer { withExtendedLifetime(link) {} }
        link.losesConnections = true
        let consumer = try link.makeConsumer()
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        var count = 0
        for _ in 0..<8 { count += try consumer.poll(maxCount: 1, timeout: .zero).messages.count }
        #expect((2...5).contains(count))
        let last = try consumer.poll(maxCount: 1, timeout: .zero)
        #expect(last.messages.isEmpty && last.events == [.disconnected(reason: "the connection was lost")])
    }

    /// Topics that are lost are read again from the beginning.
    @Test func topicsAreReadToTheirEndOverConnectionsThatAreLost() throws {
        let trace = try trace([.lostConnections, .wipe, .reordering], seeds: 1...6)
        #expect(trace.contains { $0.contains("the topic is wiped") })
    }

    @Test func controlRecordsAreNoMessagesThatWait() throws {
        _ = try trace([.controlRecords, .prune, .forget], seeds: 1...6)
    }

    /// In these seeds, a topic has a control record where the last message was that a node had read.
    @Test(arguments: [1006, 1042, 1065] as [UInt64]) func p215controlRecordsHideNoLostMessages(_ seed: UInt64) throws {
        _ = try trace([.controlRecords, .prune, .forget], seeds: seed...seed)
    }

    @Test func aTopicWithFewerPartitionsIsReadToItsEnd() throws {
        let trace = try trace([.fewerPartitions], seeds: 1...6)
        #expect(trace.contains { $0.contains("the topic is recreated, with only") })
    }

    @Test func snapshotsThatDisappearAreReplaced() throws {
        let trace = try trace([.lostSnapshots], seeds: 1...12)
        #expect(trace.contains { $0.contains("of snapshots are gone") })
        #expect(trace.contains { $0.contains("the topic for snapshots is wiped") })
        #expect(trace.contains { $0.contains("makes a snapshot") })
    }

    /// In these seeds, the topic for snapshots has as many messages as before it was wiped.
    @Test(arguments: [13, 47] as [UInt64]) func snapshotsOfARecreatedTopicAreFound(_ seed: UInt64) throws {
        _ = try trace([.lostSnapshots], seeds: seed...seed)
    }

    /// Nodes agree, and no transaction of the future is left.
    @Test(arguments: [[.restamp], [.restamp, .fork], [.restamp, .chunks, .crash]] as [Set<Fault>])
    func whatWasStampedInTheFutureIsReplaced(_ faults: Set<Fault>) throws {
        let trace = try trace(faults, seeds: 1...8)
        #expect(trace.contains { $0.contains("has a clock that is a day ahead") })
        #expect(trace.contains { $0.contains(/restamps [1-9]\d* rows, and replaces [1-9]/) })
    }

    /// In these seeds, such a row has an integer key that is its identity.
    @Test(arguments: [20, 1029, 1081] as [UInt64]) func p44rowsThatAreIdentifiedByAnIntegerKeyAreReplaced(
        _ seed: UInt64
    ) throws {
        _ = try trace([.restamp, .fork], seeds: seed...seed)
    }

    @Test func aStoreThatTakesAnotherNodeIDLosesNothing() throws {
        let trace = try trace([.fork, .chunks], seeds: 1...8)
        #expect(trace.contains { $0.contains("stops, and will be another node") })
        #expect(trace.contains { $0.contains(/takes a node ID of its own, and republishes [1-9]\d* transactions/) })
    }
}
