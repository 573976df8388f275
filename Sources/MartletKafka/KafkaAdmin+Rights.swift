import CRdKafka
import Foundation
public import MartletBus
import Synchronization

/// The result of testing a right.
public struct KafkaRightTrial: Sendable {
    public enum Outcome: Sendable {
        case granted
        /// The broker denies it.
        case missing(BusError)
        /// The right could not be tested, or the test failed for another reason.
        case unknown(BusError)
    }

    public var right: KafkaRight
    public var outcome: Outcome
    /// The command that grants the right, in one line.
    public var remedy: String
}

extension KafkaAdmin {
    /// Tests the rights to read and write a topic, or the right to create it if it does not exist. Blocks for at most
    /// `timeout` per right.
    ///
    /// Nothing is left behind. Writing is tested with a number of acknowledgements that Kafka rejects only after it has
    /// checked the right to write. A broker that does not reject it stores one message, which nodes ignore.
    ///
    /// - Parameter specification: the specification that the topic would be created with.
    /// - Throws: ``/MartletBus/BusError`` with code `.unreachable`, if no right could be tested.
    public func tryRights(
        topic specification: KafkaTopicSpecification, timeout: Duration = .seconds(10)
    ) throws(BusError) -> [KafkaRightTrial] {
        let topic = specification.name
        var configuration = bus.configuration
        configuration.topic = topic
        configuration.storesGroupOffsets = false
        let own = try KafkaBus(configuration, logger: bus.logger)
        let client = try own.makeClient(.consumer, role: "admin")
        let rights = (
            read: KafkaRight(.read, .topic(topic)), write: KafkaRight(.write, .topic(topic)),
            create: KafkaRight(.create, .topic(topic))
        )
        let partitions: [RDClient.TopicMetadata.Partition]
        do throws(BusError) {
            partitions = try client.metadata(topic: topic, timeout: timeout).partitions
        } catch {
            switch error.code {
            case .unknownTopic:
                return [
                    trial(rights.create) { () throws(BusError) in
                        try createTopic(
                            specification, client, timeout: timeout, "create the topic \(topic)", isTrial: true)
                    }
                ]
            case .unauthorized:
                // Each of them includes the right to describe the topic. The broker gives the same answer if the topic
                // does not exist.
                return [rights.read, rights.write].map {
                    KafkaRightTrial(right: $0, outcome: .missing(error), remedy: remedy($0))
                }
            default:
                throw error
            }
        }
        let partition = partitions.first { $0.leader >= 0 }?.id ?? 0
        return [
            trial(rights.read) { () throws(BusError) in try own.tryToRead(partition, timeout: timeout) },
            trial(rights.write) { () throws(BusError) in try own.tryToWrite(timeout: timeout) },
        ]
    }

    /// Tests the right to read a topic that another system writes.
    public func tryToRead(topic: String, timeout: Duration = .seconds(10)) throws(BusError) -> KafkaRightTrial {
        var configuration = bus.configuration
        configuration.topic = topic
        configuration.storesGroupOffsets = false
        let own = try KafkaBus(configuration, logger: bus.logger)
        return trial(KafkaRight(.read, .topic(topic))) { () throws(BusError) in
            let client = try own.makeClient(.consumer, role: "admin")
            let partitions = try client.metadata(topic: topic, timeout: timeout).partitions
            try own.tryToRead(partitions.first { $0.leader >= 0 }?.id ?? 0, timeout: timeout)
        }
    }

    /// Tests the right that an idempotent producer needs. From Kafka 2.8 on, the right to write to any topic includes
    /// it.
    public func tryIdempotence(timeout: Duration = .seconds(10)) -> KafkaRightTrial {
        trial(KafkaRight(.idempotentWrite, .cluster)) { () throws(BusError) in
            try bus.tryIdempotence(timeout: timeout)
        }
    }

    /// Tests the right to store a node's offsets for lag tools.
    ///
    /// - Parameters:
    ///   - node: the node's ID.
    ///   - positions: the node's read positions, which this stores.
    public func tryGroup(
        of node: String, _ positions: [PartitionPosition], timeout: Duration = .seconds(10)
    ) -> KafkaRightTrial {
        let group = KafkaRight.group(of: node)
        return trial(KafkaRight(.read, .group(group))) { () throws(BusError) in
            let client = try bus.makeClient(.committer, role: "admin", group: group)
            try client.store(positions, topic: bus.topic)
            let deadline = ContinuousClock.now + timeout
            while ContinuousClock.now < deadline {
                let (isStored, errors) = client.offsetAnswers(group: group, timeout: .milliseconds(100))
                if isStored { return }
                if let error = errors.first(where: { $0.code == .unauthorized }) { throw error }
            }
            throw BusError(.timedOut, "could not store the offsets of group \(group): no answer", isRetriable: true)
        }
    }

    /// Returns how to grant a right, in one line.
    public func remedy(_ right: KafkaRight) -> String { bus.describer(.consumer, role: "admin").remedy(right) }

    private func trial(_ right: KafkaRight, _ body: () throws(BusError) -> Void) -> KafkaRightTrial {
        var outcome = KafkaRightTrial.Outcome.granted
        do throws(BusError) { try body() } catch {
            outcome = error.isRefusedRight ? .missing(error) : .unknown(error)
        }
        return KafkaRightTrial(right: right, outcome: outcome, remedy: remedy(right))
    }
}

extension KafkaBus {
    /// Reads from the end of a partition until the broker reports the end.
    fileprivate func tryToRead(_ partition: Int32, timeout: Duration) throws(BusError) {
        let consumer = try makeConsumer()
        defer { consumer.close() }
        let end = try consumer.watermarks(partition: partition, timeout: timeout).high
        try consumer.assign([PartitionPosition(partition: partition, offset: end)])
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline {
            let batch = try consumer.poll(maxCount: 1, timeout: .milliseconds(500))
            if !batch.messages.isEmpty { return }
            for event in batch.events {
                switch event {
                // If retention drops the messages meanwhile, reading was allowed all the same.
                case .endOfPartition, .offsetOutOfRange: return
                case .error(let error) where !error.isRetriable: throw error
                case .error, .disconnected: continue
                }
            }
        }
        throw BusError(.timedOut, "could not read topic \(topic): no answer", isRetriable: true)
    }

    fileprivate func tryToWrite(timeout: Duration) throws(BusError) {
        let answer = Mutex<Acknowledgement?>(nil)
        let client = try makeClient(.prober, role: "admin")
        let producer = KafkaProducer(client, configuration) { acknowledgement in
            answer.withLock { $0 = acknowledgement }
        }
        defer { producer.close() }
        try producer.send(.probe)
        _ = producer.flush(timeout: timeout)
        guard case .failure(let error)? = answer.withLock(\.self)?.result else {
            guard answer.withLock({ $0 }) != nil else {
                throw BusError(.timedOut, "could not write to topic \(topic): no answer", isRetriable: true)
            }
            return
        }
        // The broker returns this error only to a user who may write.
        guard error.underlyingCode != RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS.rawValue else { return }
        throw error
    }

    fileprivate func tryIdempotence(timeout: Duration) throws(BusError) {
        var configuration = configuration
        configuration.statisticsInterval = .milliseconds(100)
        let client = try KafkaBus(configuration, logger: logger).makeClient(.producer, role: "admin")
        // This makes the client connect.
        _ = try client.metadata(topic: topic, timeout: timeout)
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline {
            if let fatal = client.fatalError {
                let code = rd_kafka_resp_err_t(rawValue: Int32(clamping: fatal.underlyingCode ?? 0))
                throw client.context.describe.error(code, doing: "write to the cluster", reason: fatal.message)
            }
            guard let event = rd_kafka_queue_poll(client.queue, 100) else { continue }
            defer { rd_kafka_event_destroy(event) }
            guard let json = rd_kafka_event_stats(event) else { continue }
            if try ProducerState(json).isAssigned { return }
        }
        throw BusError(.timedOut, "could not get a producer ID: no answer", isRetriable: true)
    }
}

/// The part of librdkafka's statistics that shows whether a producer may write.
private struct ProducerState: Decodable {
    struct Semantics: Decodable {
        var idemp_state: String
    }

    var eos: Semantics

    init(_ json: UnsafePointer<CChar>) throws(BusError) {
        do {
            self = try JSONDecoder().decode(ProducerState.self, from: Data(bytes: json, count: strlen(json)))
        } catch {
            throw BusError(.other, "librdkafka's statistics could not be read: \(error)")
        }
    }

    var isAssigned: Bool { eos.idemp_state == "Assigned" }
}
