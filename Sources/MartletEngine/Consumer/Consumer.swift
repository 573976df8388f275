import Foundation
import Logging
public import MartletBus
package import MartletCore
import MartletMerge
import MartletReplica
public import MartletStore
import MartletWire
import Metrics
import Synchronization

/// Reads the topic and applies the transactions of other nodes until it is stopped.
///
/// The store keeps the offsets, and writes them in the same SQLite transaction as the changes: a crash neither applies
/// anything twice nor skips it. The log itself is not trusted. After each connection, the consumer reads the last
/// message before the stored offset again. If that message is a different one, or the offset is gone, it reads the
/// partition from the beginning, and republishes the transactions of this node that it finds missing.
///
/// Runs on a thread that the caller provides; see ``run()``.
public final class Consumer: Sendable {
    let session: ReplicaSession
    private let applier: BatchApplier
    let quarantine: QuarantineRetry
    /// What loading snapshots has told the consumer.
    let snapshotState: SnapshotState
    /// The most messages that one poll returns.
    private let batchCount: Int
    /// The size from which on a poll returns no further message.
    private let batchBytes: Int
    let bus: any Bus
    let publisher: Publisher?
    let snapshots: (any SnapshotSource)?
    let log: Logger
    private let metrics: ConsumerMetrics
    public let stopSignal = WakeSignal()
    let progress: Mutex<ConsumerProgress>
    private let failure = Mutex<StoreError?>(nil)
    // Safe because only the thread that runs `step` touches it.
    nonisolated(unsafe) var state: State

    struct State {
        var consumer: (any BusConsumer)?
        /// The batch that was read ahead while the one before it was applied.
        var ahead: BatchAhead?
        /// The batch that is being applied, if it was read ahead. It is released when the batch after the next one is
        /// decoded.
        var current: BatchAhead?
        var reading = TopicReading()
        var own: OwnComparison
        var schedule: ConsumerSchedule
        var backoff = Backoff()
        var storedEnds: [Int32: Int64] = [:]
        /// True while offsets have not been committed to the broker for lag tools.
        var hasUnpublished = false
        /// True while the consumer waits for a newer snapshot.
        var wantsSnapshot = false
        /// The snapshot that was loaded while connecting.
        var loaded: UUID?
        /// The last error that the broker reported while it stayed connected, and when.
        var brokerError: (text: String, at: ContinuousClock.Instant)?
        /// True once the consumer has looked for messages that the quarantine did not keep.
        var hasReadUnkept = false

        init(_ schedule: ConsumerSchedule, _ own: OwnComparison) {
            self.schedule = schedule
            self.own = own
        }
    }

    /// Where this node reads the topic.
    var positions: TopicPositions { TopicPositions(session, topic: bus.topic) }
    var ownCount: OwnCount { OwnCount(session) }

    /// See ``init(engine:bus:publisher:source:countInterval:log:metrics:)``.
    init(
        session: ReplicaSession, applier: BatchApplier, quarantine: QuarantineRetry, snapshotState: SnapshotState,
        batchCount: Int, batchBytes: Int, republishing: RepublishPolicy, bus: any Bus, publisher: Publisher?,
        source snapshots: (any SnapshotSource)?, countInterval: Duration, log: Logger, metrics: any MetricsFactory
    ) {
        self.session = session
        self.applier = applier
        self.quarantine = quarantine
        self.snapshotState = snapshotState
        self.batchCount = batchCount
        self.batchBytes = batchBytes
        self.bus = bus
        self.publisher = publisher
        self.snapshots = snapshots
        self.log = log
        self.metrics = ConsumerMetrics(metrics)
        progress = Mutex(ConsumerProgress(startedAt: session.instant()))
        state = State(
            ConsumerSchedule(countInterval: countInterval, at: session.instant()), OwnComparison(republishing))
    }

    /// The reason why reading ended for good: another store uses this node's ID, or the file was replaced by an older
    /// state of it. Callable from any thread.
    public var lastFailure: StoreError? { failure.withLock { $0 } }

    /// How far reading has come. From any thread.
    public var currentProgress: ConsumerProgress { progress.withLock { $0 } }

    /// Reads and applies until ``stopSignal`` is stopped. Blocks the calling thread.
    public func run() {
        while !stopSignal.isStopped {
            step(timeout: .milliseconds(500))
            if state.backoff.delay > .zero { stopSignal.wait(timeout: state.backoff.delay) }
        }
        if let consumer = state.consumer { publishProgress(consumer, isFinal: true) }
        disconnect()
        do { try storeEnds(isFinal: true) } catch {
            log.info("Could not store the ends of the partitions", metadata: ["error": "\(error)"])
        }
    }

    /// Stores the ends of the partitions, at most once a second: they serve status queries, not reading.
    private func storeEnds(isFinal: Bool) throws {
        let ends = progress.withLock { $0.ends }
        guard ends != state.storedEnds, isFinal || state.schedule.isDue(.storeEnds, at: session.instant()) else {
            return
        }
        try positions.noteEnds(ends)
        state.storedEnds = ends
        state.schedule.note(.storeEnds, at: session.instant())
    }

    /// Commits offsets to the broker for lag tools, at most once a second because it is a request.
    private func publishProgress(_ consumer: any BusConsumer, isFinal: Bool) {
        guard state.hasUnpublished, isFinal || state.schedule.isDue(.publishOffsets, at: session.instant()) else {
            return
        }
        // Lag tools count to the end of the partition, including entries that consumers never receive.
        let next = state.reading.next.merging(
            state.reading.reached.filter { state.reading.next[$0.key] != nil }, uniquingKeysWith: max)
        consumer.publishProgress(
            next.map { PartitionPosition(partition: $0.key, offset: $0.value) }, of: session.node.description)
        state.hasUnpublished = false
        state.schedule.note(.publishOffsets, at: session.instant())
    }

    /// Polls once, and applies the messages.
    ///
    /// - Returns: what was applied, or nil when something holds reading up.
    @discardableResult
    public func step(timeout: Duration) -> ApplyReport? {
        do {
            // The publisher may have found that the store was replaced.
            try session.checkIsInPlace()
            let consumer = try connect()
            let (batch, decoded) = try nextBatch(consumer, timeout: timeout)
            guard !state.reading.hasUnexamined(batch) else {
                // Nothing of the batch was applied: it is read again.
                disconnect()
                return ApplyReport()
            }
            let assignments = state.reading.assignments
            var report = ApplyReport()
            // An end reported within this batch precedes the messages that follow it.
            let before = state.reading.next
            if !batch.messages.isEmpty { report = try apply(decoded, consumer) }
            for event in batch.events where state.reading.assignments == assignments {
                try handle(.reported(event, before: before), consumer)
            }
            if state.reading.isConnected {
                publishProgress(consumer, isFinal: false)
                try countPartitions(consumer)
                try refreshEnds(consumer)
                try compareAnswered(consumer)
                try lookForSnapshot()
                try publishMissing()
            }
            if try DeferredRetry.releaseDue(session) > 0 {
                log.info("Parked transactions applied: their time has come")
            }
            try openQuarantined()
            state.backoff.reset()
            let isConnected = state.reading.isConnected
            let problem = brokerProblem()
            progress.withLock {
                $0.steppedAt = session.instant()
                if isConnected { $0.problem = problem }
            }
            return report
        } catch let error as StoreError where error.code == .copied {
            progress.withLock { $0.problem = "\(error)" }
            disconnect()
            failure.withLock { $0 = error }
            stopSignal.stop()
            return nil
        } catch  where error is Stopped || (error is CancellationError && stopSignal.isStopped) {
            disconnect()
            return nil
        } catch {
            log.warning("Reading failed; will retry", metadata: ["error": "\(error)"])
            progress.withLock { $0.problem = "\(error)" }
            metrics.retries.increment()
            disconnect()
            state.backoff.fail()
            return nil
        }
    }

    /// The error that the broker reported within ``errorInterval``, or else the partitions without a leader. Nothing
    /// says that an error is over: the topic may be idle, or another partition may keep delivering messages. A broker
    /// that only returns errors repeats them within this time.
    private func brokerProblem() -> String? {
        if let error = state.brokerError, session.instant() - error.at > Self.errorInterval { state.brokerError = nil }
        if let error = state.brokerError { return error.text }
        guard !state.reading.unexamined.isEmpty else { return nil }
        return "Without a leader: partitions \(state.reading.unexamined.sorted())"
    }

    /// Applies quarantined messages that lacked a key, if the key ring has changed.
    private func openQuarantined() throws {
        guard let opened = try quarantine.retryMissingKeys() else { return }
        log.info(
            "Key ring changed; messages that lacked a key retried",
            metadata: ["applied": "\(opened.applied)", "kept": "\(opened.kept)"])
    }

    // MARK: Assignment

    private func connect() throws -> any BusConsumer {
        if let consumer = state.consumer {
            try handle(.leapt(snapshotState.movedOffsets), consumer)
            if state.reading.isConnected { return consumer }
        }
        let consumer = try bus.makeConsumer()
        state.consumer = consumer
        state.loaded = nil
        let count = try consumer.partitionCount(timeout: .seconds(5))
        state.schedule.note(.countPartitions, at: session.instant())
        if try positions.adopt(partitionCount: count) {
            log.error(
                "Topic replaced or its partition count changed; reading all of it",
                metadata: ["topic": "\(bus.topic)", "partitions": "\(count)"])
            progress.withLock { $0.ends = [:] }
        }
        try lookUpOffsets(of: (0..<count).map { Int32($0) })
        state.reading.leaveUnexamined(consumer.partitionsWithoutLeader)
        if !state.reading.unexamined.isEmpty {
            log.warning(
                "Partitions without a leader; reading the others",
                metadata: ["partitions": "\(state.reading.unexamined.sorted())"])
        }
        // Known from the start, so that the progress of a long catch-up shows its length.
        let marks = try watermarks(consumer)
        // Ends of partitions that the topic no longer has would look like messages that are never read. The ends of
        // partitions without a leader are kept, so that their lag stays the last known one.
        let unexamined = state.reading.unexamined
        progress.withLock { progress in
            let kept = progress.ends.filter { unexamined.contains($0.key) }
            progress.ends = marks.mapValues(\.high).merging(kept) { end, _ in end }
        }
        try storeEnds(isFinal: true)
        try readUnkept(consumer, marks)
        let loaded = try bootstrap(consumer, marks)
        try noteSnapshotState()
        let own = try proveTopic(marks) ?? loaded
        if try ownCount.isUnderWay() {
            if let own {
                var scan = try state.reading.scan ?? makeScan()
                for sequences in own { scan.note(sequences) }
                state.reading.scan = scan
            } else if state.reading.assignments == 0, try ownCount.canResume() {
                // The count continues where the previous process stopped.
                var scan = try makeScan()
                let confirmed = try ownCount.confirmed()
                if confirmed > 0 { scan.note(1...confirmed) }
                state.reading.scan = scan
            } else if state.reading.scan == nil {
                try reset(Set(state.reading.partitions), consumer)
            }
        }
        try assign(consumer)
        return consumer
    }

    /// Reads where to continue.
    func lookUpOffsets(of partitions: [Int32]? = nil) throws {
        state.reading.look(at: partitions, from: try positions.all())
    }

    /// Checks at intervals whether the topic got more partitions, because no event says so.
    private func countPartitions(_ consumer: any BusConsumer) throws {
        guard state.schedule.begin(.countPartitions, at: session.instant()) else { return }
        try handle(.counted(consumer.partitionCount(timeout: .seconds(5))), consumer)
    }

    /// Assigns the partitions from the stored offsets, one message earlier where that message still exists, to check
    /// that it is the one that was read.
    private func assign(_ consumer: any BusConsumer) throws {
        state.reading.assign(leaps: snapshotState.movedOffsets)
        forgetAhead()
        progress.withLock {
            $0.positions = state.reading.next
            $0.hasReadToEnd = false
        }
        let published = publisher?.currentProgress
        let acknowledged = try published?.acknowledged ?? PublishProgress(session).acknowledged()
        state.own.assign(acknowledged: acknowledged, unanswered: published.flatMap { UnansweredMessages($0) })
        // The broker may lack what was read before: a commit was lost, or the group has expired.
        state.hasUnpublished = true
        let starts = try state.reading.partitions.map { partition in
            let next = state.reading.next[partition] ?? 0
            guard !state.reading.unexamined.contains(partition) else {
                return PartitionPosition(partition: partition, offset: next)
            }
            let low = try consumer.watermarks(partition: partition, timeout: .seconds(5)).low
            return PartitionPosition(partition: partition, offset: next > low ? next - 1 : next)
        }
        let earlier = starts.filter { $0.offset < state.reading.next[$0.partition] ?? 0 }
        state.reading.expectLastMessage(of: earlier.map(\.partition))
        try consumer.assign(starts)
    }

    /// Updates the ends of partitions that are not read to their end: they grow while a backlog is applied. This makes
    /// no request: the answer would queue behind the messages that the broker is sending, and those already read would
    /// wait.
    private func refreshEnds(_ consumer: any BusConsumer) throws {
        guard !state.reading.behind.isEmpty, state.schedule.begin(.refreshEnds, at: session.instant()) else { return }
        for partition in state.reading.behind {
            guard let end = consumer.knownEnd(of: partition) else { continue }
            progress.withLock { $0.ends[partition] = max(end, $0.ends[partition] ?? 0) }
        }
        try storeEnds(isFinal: false)
    }

    private static let errorInterval = Duration.seconds(10)

    // MARK: Messages

    /// Returns the next messages. If more than one batch is waiting, decodes the following one meanwhile.
    private func nextBatch(
        _ consumer: any BusConsumer, timeout: Duration
    ) throws -> (ConsumerBatch, [DecodedMessage]) {
        let batch: ConsumerBatch
        let decoded: [DecodedMessage]
        let spent = state.current
        state.current = state.ahead
        if let ahead = state.ahead {
            (batch, decoded) = ahead.result()
        } else {
            batch = try poll(consumer, timeout: timeout)
            decoded = applier.decode(batch.messages)
        }
        state.ahead = nil
        let isFull = batch.messages.count >= batchCount || batch.payloadBytes >= batchBytes
        guard isFull else { return (batch, decoded) }
        let following = try poll(consumer, timeout: .zero)
        if !following.messages.isEmpty || !following.events.isEmpty {
            state.ahead = BatchAhead(following, applier: applier, after: spent)
        }
        return (batch, decoded)
    }

    private func poll(_ consumer: any BusConsumer, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try consumer.poll(maxCount: batchCount, maxBytes: batchBytes, timeout: timeout)
    }

    private func apply(
        _ batch: [DecodedMessage], _ consumer: any BusConsumer
    ) throws -> ApplyReport {
        let others =
            state.reading.unproven.isEmpty ? [] : state.reading.lackingLastMessage(batch.map(\.message.position))
        let messages = others.isEmpty ? batch : batch.filter { !others.contains($0.message.position.partition) }
        var report = try applier.apply(messages, follows: log.followsTransactions)
        report.rewound += others.sorted()
        // The last message of each run of messages of one partition.
        let last = messages.indices.filter {
            $0 + 1 == messages.count
                || messages[$0].message.position.partition != messages[$0 + 1].message.position.partition
        }.map { messages[$0].message }
        warnOfDerived()
        let next = last.map {
            PartitionPosition(partition: $0.position.partition, offset: $0.position.offset + 1)
        }
        let actions = state.reading.handle(.applied(next: next, rewound: report.rewound))
        if state.reading.scan != nil {
            for decoded in messages where !report.rewound.contains(decoded.message.position.partition) {
                state.reading.scan?.note(decoded, node: session.node)
            }
        }
        progress.withLock {
            $0.applied += report.applied
            $0.positions = state.reading.next
            for message in last { $0.appended[message.position.partition] = message.timestamp }
        }
        metrics.record(report, now: session.now())
        state.hasUnpublished = true
        logOutcome(of: report)
        for action in actions { try perform(action, consumer) }
        return report
    }

    private func handle(_ event: TopicReading.Event, _ consumer: any BusConsumer) throws {
        for action in state.reading.handle(event) { try perform(action, consumer) }
    }

    private func perform(_ action: TopicReading.Action, _ consumer: any BusConsumer) throws {
        // An action before this one may have dropped the connection.
        guard state.reading.isConnected else { return }
        switch action {
        case .reread(let partition, let why): try readAgain(partition, consumer, why: why)
        case .noteEnd(let partition, let end, let isLower):
            if isLower { state.hasUnpublished = true }
            progress.withLock {
                $0.ends[partition] = end
                $0.caughtUpAt[partition] = session.instant()
            }
            // Stored at once if the end is lower than the stored one: a node that seems to lag starts no check.
            try storeEnds(isFinal: isLower)
        case .compareOwn:
            progress.withLock { $0.hasReadToEnd = true }
            try compareOwn(consumer)
        case .reconnect(let reason):
            if let reason {
                log.warning("Connection to the broker lost", metadata: ["reason": "\(reason)"])
                progress.withLock { $0.problem = reason }
            }
            disconnect()
        case .warn(let error):
            log.warning("Broker error", metadata: ["error": "\(error)"])
            state.brokerError = ("\(error)", session.instant())
            progress.withLock { $0.problem = "\(error)" }
        case .fail(let error): throw error
        }
    }

    /// Reads a partition from its first offset: the log was truncated, created again, or has moved on.
    private func readAgain(_ partition: Int32, _ consumer: any BusConsumer, why: String) throws {
        let marks = try consumer.watermarks(partition: partition, timeout: .seconds(5))
        let stored = state.reading.next[partition] ?? 0
        metrics.rereads.increment()
        log.error(
            "Rereading the partition from its beginning: \(why)",
            metadata: [
                "partition": "\(partition)", "stored": "\(stored)", "low": "\(marks.low)", "high": "\(marks.high)",
            ])
        if stored < marks.low {
            log.error(
                "Unread transactions are gone from the topic; `martlet status` lists the gap")
        }
        if marks.low > 0, let snapshots {
            // The messages before the low watermark were read from another log, or not at all. A snapshot may have
            // them; the consumer looks for one when connecting.
            try WantedOffsets.add([partition: marks.low], session)
            if stored >= marks.low {
                // The stored offset may have come from the snapshot.
                if let loaded = state.loaded { snapshots.noteStranger(loaded) }
                try reset([partition], consumer)
            }
            return disconnect()
        }
        try reset([partition], consumer)
        try assign(consumer)
    }

    /// Reads partitions from their first offset. If one of them may have this node's own messages, forgets which of
    /// those were read back, and rereads all partitions that may have some.
    func reset(_ partitions: Set<Int32>, _ consumer: any BusConsumer) throws {
        let own = try ownCount.partitions()
        let forgetsOwn = own.isEmpty || !own.isDisjoint(with: partitions)
        // If a snapshot brought all that this node published, none of it was seen in any partition.
        let seesNone = try own.isEmpty && PublishProgress(session).acknowledged() > 0
        let counted = seesNone ? Set(state.reading.partitions) : own
        let positions = try (forgetsOwn ? partitions.union(counted) : partitions).sorted().map { partition in
            PartitionPosition(
                partition: partition, offset: try consumer.watermarks(partition: partition, timeout: .seconds(5)).low)
        }
        let scan = try forgetsOwn ? makeScan() : state.reading.scan
        try self.positions.reset(to: positions, forgetsOwn: forgetsOwn)
        state.reading.move(to: positions)
        state.reading.scan = scan
    }

    private func makeScan() throws -> OwnSequenceScan {
        var scan = OwnSequenceScan()
        for unkept in try ownCount.unkept() { scan.note(unkept.sequences) }
        return scan
    }

    /// Drops the connection. The next step connects again and re-examines the topic.
    package func disconnect() {
        state.consumer?.close()
        state.consumer = nil
        state.reading.disconnect()
        // Others may have published for days by the time that there is a connection again.
        progress.withLock { $0.hasReadToEnd = false }
        forgetAhead()
    }

    private func forgetAhead() {
        state.ahead = nil
        state.current = nil
    }
}
