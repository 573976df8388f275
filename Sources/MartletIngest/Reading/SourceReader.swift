import GRDB
import Logging
import MartletBus
import MartletCore
import MartletEngine
import MartletReplica
import MartletStore

/// Reads one topic, and merges its records. Used by one thread at a time.
final class SourceReader {
    private static let maxCount = 500
    private static let maxBytes = 1 << 20
    private static let patience = Duration.seconds(10)
    /// How often it looks for partitions that were added to the topic, and connects again if some had no leader.
    private static let countInterval = Duration.seconds(60)

    let mapping: TableMapping
    private let engine: SyncEngine
    private let topics: any IngestTopics
    private let log: Logger
    private let metrics: IngestMetrics
    private var connection: Connection?
    private var backoff = Backoff(from: .milliseconds(200), to: .seconds(30))
    private var retriedAt: ContinuousClock.Instant?

    private struct Connection {
        let consumer: any BusConsumer
        let madeAt: ContinuousClock.Instant
        var partitionCount: PartitionCount
        /// True if partitions that had no leader are left out.
        var isIncomplete = false
        var partitions: [Int32: PartitionReading]
        /// The partitions that the consumer reads. Nil if it has to be told.
        var assigned: Set<Int32>?
    }

    init(
        _ mapping: TableMapping, engine: SyncEngine, topics: any IngestTopics, log: Logger, metrics: IngestMetrics
    ) {
        self.mapping = mapping
        self.engine = engine
        self.topics = topics
        var log = log
        log[metadataKey: "topic"] = "\(mapping.topic)"
        self.log = log
        self.metrics = metrics
    }

    /// What the reader knows of the topic.
    struct State {
        var lag: Int64 = 0
        var held = 0
        var isConnected = false
        /// True if all partitions were read to their ends, apart from those that a record holds up.
        var isCaughtUp = false
    }

    var state: State {
        guard let connection else { return State() }
        var state = State(isConnected: true, isCaughtUp: !connection.isIncomplete)
        for (partition, reading) in connection.partitions {
            if reading.hold != nil { state.held += 1 }
            if reading.hold == nil, !reading.isAtEnd { state.isCaughtUp = false }
            state.lag += max(0, (connection.consumer.knownEnd(of: partition) ?? reading.next) - reading.next)
        }
        return state
    }

    /// Reads and merges what there is, and waits for it at most for the timeout.
    ///
    /// - Returns: how many records were merged.
    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if the store's path leads to another file,
    ///   `CancellationError` if a stop has interrupted it. Other errors are logged, and what was not merged is read
    ///   again.
    func step(timeout: Duration) throws -> Int {
        if let retriedAt, engine.instant() < retriedAt { return 0 }
        do {
            let count = try read(timeout: timeout)
            retriedAt = nil
            backoff.reset()
            return count
        } catch is Recreated {
            disconnect()
            return 0
        } catch let error as StoreError where error.code == .moved {
            throw error
        } catch let error as CancellationError {
            throw error
        } catch {
            // Other topics go on.
            disconnect()
            retriedAt = engine.instant() + backoff.fail()
            metrics.noteRetry()
            log.warning("Could not ingest a topic; will retry", metadata: ["error": "\(error)"])
            return 0
        }
    }

    func disconnect() {
        connection?.consumer.close()
        connection = nil
    }

    private func read(timeout: Duration) throws -> Int {
        var connection = try self.connection ?? connect()
        self.connection = connection
        let hasChanged = try connection.partitionCount.hasChanged(
            connection.consumer, every: Self.countInterval, timeout: Self.patience, at: engine.instant())
        let isOver = connection.isIncomplete && engine.instant() - connection.madeAt >= Self.countInterval
        guard !hasChanged, !isOver else {
            disconnect()
            return 0
        }
        try assign(&connection)
        self.connection = connection
        let batch = try connection.consumer.poll(maxCount: Self.maxCount, maxBytes: Self.maxBytes, timeout: timeout)
        var count = 0
        let records = Dictionary(grouping: batch.messages) { $0.position.partition }
        let assigned = connection.assigned ?? []
        for (partition, messages) in records.sorted(by: { $0.key < $1.key }) where assigned.contains(partition) {
            count += try merge(messages, of: partition, &connection)
        }
        self.connection = connection
        try handle(batch.events)
        return count
    }

    private func handle(_ events: [ConsumerEvent]) throws {
        for event in events {
            switch event {
            case .endOfPartition(let position):
                guard let reading = connection?.partitions[position.partition], reading.hold == nil else { continue }
                connection?.partitions[position.partition]?.isAtEnd = reading.next <= position.offset
            case .offsetOutOfRange: disconnect()
            case .disconnected(let reason): log.debug("Connection lost", metadata: ["reason": "\(reason)"])
            case .error(let error): if !error.isRetriable { throw error }
            }
        }
    }

    // MARK: Where to read

    private func connect() throws -> Connection {
        let consumer = try topics.bus(of: mapping.topic).makeConsumer()
        do {
            let count = try consumer.partitionCount(timeout: Self.patience)
            let now = engine.instant()
            var connection = Connection(
                consumer: consumer, madeAt: now, partitionCount: PartitionCount(count, at: now), partitions: [:])
            let leaderless = consumer.partitionsWithoutLeader
            if !leaderless.isEmpty {
                connection.isIncomplete = true
                log.warning(
                    "Partitions without a leader; reading the others",
                    metadata: ["partitions": "\(leaderless.sorted())"])
            }
            for partition in 0..<Int32(count) where !leaderless.contains(partition) {
                connection.partitions[partition] = PartitionReading(next: try start(of: partition, consumer))
            }
            return connection
        } catch {
            consumer.close()
            throw error
        }
    }

    /// Returns where to begin to read a partition.
    private func start(of partition: Int32, _ consumer: any BusConsumer) throws -> Int64 {
        var place = try engine.session.read { try SourcePlace.load($0, mapping.topic, partition) }
        let bounds = try consumer.watermarks(partition: partition, timeout: Self.patience)
        if place.next > bounds.high { place = try beginAgain(partition, consumer) }
        if place.next < bounds.low {
            // A topic that is read for the first time need not begin at 0.
            if place.next > 0 {
                log.warning(
                    "A topic to ingest has lost records that were not ingested",
                    metadata: ["partition": "\(partition)", "from": "\(place.next)", "to": "\(bounds.low)"])
            }
            return bounds.low
        }
        // The last record is read again, to see whether the topic is still the same one.
        return place.seen.map { max($0.offset, bounds.low) } ?? place.next
    }

    /// The topic was recreated.
    private struct Recreated: Error {}

    /// Forgets how far a partition was read: the topic is another one.
    @discardableResult
    private func beginAgain(_ partition: Int32, _ consumer: any BusConsumer) throws -> SourcePlace {
        var place = try engine.session.read { try SourcePlace.load($0, mapping.topic, partition) }
        log.warning(
            "A topic to ingest was recreated; beginning again",
            metadata: ["partition": "\(partition)", "offset": "\(place.next)"])
        place = SourcePlace(topic: mapping.topic, partition: partition)
        place.next = try consumer.watermarks(partition: partition, timeout: Self.patience).low
        try engine.session.writeMeta { [place] in try place.save($0) }
        return place
    }

    /// Reads the partitions that no record holds up, and those in which a record is to be tried again.
    private func assign(_ connection: inout Connection) throws {
        let now = engine.instant()
        let readable = connection.partitions.filter { $0.value.isReadable(at: now) }
        guard Set(readable.keys) != connection.assigned else { return }
        // Somebody may have skipped the record.
        for (partition, reading) in readable where reading.hold != nil {
            metrics.noteRetry()
            let next = try start(of: partition, connection.consumer)
            connection.partitions[partition]?.next = next
        }
        let places = connection.partitions.filter { readable[$0.key] != nil }.sorted { $0.key < $1.key }
        try connection.consumer.assign(places.map { PartitionPosition(partition: $0.key, offset: $0.value.next) })
        connection.assigned = Set(readable.keys)
    }

    // MARK: Merging

    private func merge(
        _ messages: [IncomingMessage], of partition: Int32, _ connection: inout Connection
    ) throws -> Int {
        guard var reading = connection.partitions[partition] else { return 0 }
        let source = Source(
            topic: mapping.topic, partition: partition, partitionCount: connection.partitionCount.value)
        let outcome = try merge(messages, of: source)
        if outcome.isOfAnotherTopic {
            try beginAgain(partition, connection.consumer)
            throw Recreated()
        }
        let isNews = reading.take(outcome.place, at: engine.instant())
        if let hold = reading.hold {
            // Without this, the records after it would come next.
            connection.assigned = nil
            if isNews {
                log.warning(
                    "A record can't be ingested; its partition waits, and it will be retried",
                    metadata: [
                        "partition": "\(partition)", "offset": "\(reading.next)", "reason": "\(hold.reason)",
                    ])
            }
        } else {
            reading.isAtEnd = false
        }
        connection.partitions[partition] = reading
        metrics.noteRecords(outcome.count)
        return outcome.count
    }

    private func merge(_ messages: [IncomingMessage], of source: Source) throws -> SourceMerge.Outcome {
        let session = engine.session
        while true {
            // Outside of the SQLite transaction, in which other writers wait.
            let columns = try session.read { try TargetTable.Columns($0, mapping, Catalog.load($0)) }
            let decoder = RecordDecoder(mapping: mapping, types: columns.types, ignoring: columns.computed)
            let records = messages.map { SourceRecord($0, decoder) }
            let outcome: SourceMerge.Outcome? = try session.transaction { db, context in
                guard try TargetTable.Columns(db, mapping, context.catalog) == columns else { return nil }
                var merge = try SourceMerge(db, context, session.configuration, source, mapping)
                return try merge.merge(records)
            }
            if let outcome { return outcome }
        }
    }
}
