import CRdKafka
import Foundation
public import MartletBus
import Synchronization

/// What came of trying a right.
public struct KafkaRightTrial: Sendable {
    public enum Outcome: Sendable {
        case granted
        /// The broker refuses it.
        case missing(BusError)
        /// It could not be tried, or failed for another reason.
        case unknown(BusError)
    }

    public var right: KafkaRight
    public var outcome: Outcome
    /// What grants the right, in one line.
    public var remedy: String
}

extension KafkaAdmin {
    /// Tries the rights that reading and writing a topic take, and making it where it is not there. Blocks for at most
    /// `timeout` a right.
    ///
    /// Nothing is left behind: writing is tried with a number of acknowledgements that Kafka looks at once it knows
    /// that the sender may write, and refuses. A broker that does not refuse it stores one message, which nodes pass
    /// over.
    ///
    /// - Parameter specification: what the topic would be made with.
    /// - Throws: ``/MartletBus/BusError`` with code `.unreachable`, where no right could be tried.
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
                // Either includes the right to ask for the topic. Where it is not there, the same is said.
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

    /// Tries the right that an idempotent producer takes. From Kafka 2.8 on, the right to write to any topic includes
    /// it.
    public func tryIdempotence(timeout: Duration = .seconds(10)) -> KafkaRightTrial {
        trial(KafkaRight(.idempotentWrite, .cluster)) { () throws(BusError) in
            try bus.tryIdempotence(timeout: timeout)
        }
    }

    /// Tries the right to store a node's offsets for lag tools.
    ///
    /// - Parameters:
    ///   - node: the node's ID.
    ///   - positions: how far the node has read; they are stored.
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

    /// What grants a right, in one line.
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
    /// Reads on from the end of a partition until the broker says that it is the end.
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
                // Where old messages are dropped meanwhile, it was read all the same.
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
        // Said to whoever may write.
        guard error.underlyingCode != RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS.rawValue else { return }
        throw error
    }

    fileprivate func tryIdempotence(timeout: Duration) throws(BusError) {
        var configuration = configuration
        configuration.statisticsInterval = .milliseconds(100)
        let client = try KafkaBus(configuration, logger: logger).makeClient(.producer, role: "admin")
        // Has it connect.
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
        throw BusError(.timedOut, "could not get a producer's number: no answer", isRetriable: true)
    }
}

/// The part of librdkafka's statistics that says whether a producer may write.
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
