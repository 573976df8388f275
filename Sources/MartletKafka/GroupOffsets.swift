import CRdKafka
import Logging
import MartletBus
import Synchronization

/// Stores a node's read position where ordinary lag tools look for it: as the offsets of a consumer group of its own.
///
/// Martlet never reads these offsets back, and nothing waits for them. The connections for it (one to a broker, and one
/// to the group's coordinator) exist only while offsets change. Safe to call from any thread.
final class GroupOffsets: Sendable {
    private struct State {
        var client: RDClient?
        var group = ""
        var stored: [PartitionPosition] = []
        /// When offsets last changed.
        var changedAt: ContinuousClock.Instant?
        /// The time until which a missing right is not tried again.
        var pausesUntil: ContinuousClock.Instant?
    }

    private let topic: String
    private let logger: Logger
    private let makeClient: @Sendable (_ group: String) throws(BusError) -> RDClient
    private let state = Mutex(State())

    /// After this long without a change, the connections are closed.
    private static let idleTime = Duration.seconds(30)
    /// How long to wait before a missing right is tried again.
    private static let pause = Duration.seconds(600)

    init(topic: String, logger: Logger, makeClient: @escaping @Sendable (_ group: String) throws(BusError) -> RDClient)
    {
        self.topic = topic
        self.logger = logger
        self.makeClient = makeClient
    }

    /// Sends the offsets without waiting for the answer, if they have changed.
    func publish(_ positions: [PartitionPosition], of node: String) {
        let now = ContinuousClock.now
        let group = KafkaRight.group(of: node)
        state.withLock { state in
            hear(&state, now)
            let positions = positions.sorted { $0.partition < $1.partition }
            guard positions != state.stored || group != state.group else { return }
            guard state.pausesUntil.map({ $0 <= now }) ?? true else { return }
            do throws(BusError) {
                try send(positions, group, &state)
                state.stored = positions
                state.changedAt = now
                state.pausesUntil = nil
            } catch {
                logger.debug("\(error)")
            }
        }
    }

    /// Closes the connections if nothing has changed for a while. Call this from time to time.
    func rest() {
        let now = ContinuousClock.now
        let idle = state.withLock { state -> RDClient? in
            guard state.client != nil else { return nil }
            hear(&state, now)
            guard let changedAt = state.changedAt, now - changedAt > Self.idleTime else { return nil }
            return state.client.take()
        }
        // The client is destroyed here, outside the lock.
        withExtendedLifetime(idle) {}
    }

    func close() {
        let client = state.withLock { $0.client.take() }
        withExtendedLifetime(client) {}
    }

    private func send(_ positions: [PartitionPosition], _ group: String, _ state: inout State) throws(BusError) {
        if group != state.group { state.client = nil }
        if state.client == nil { state.client = try makeClient(group) }
        state.group = group
        try state.client?.store(positions, topic: topic)
    }

    /// Handles the broker's answers. Reports a missing right once, and doesn't try it again for a while.
    private func hear(_ state: inout State, _ now: ContinuousClock.Instant) {
        guard let client = state.client else { return }
        var refusal: BusError?
        for error in client.offsetAnswers(group: state.group).errors where error.code == .unauthorized {
            refusal = error
        }
        guard let refusal else { return }
        state.client = nil
        state.stored = []
        state.pausesUntil = now + Self.pause
        logger.warning(
            "Could not commit offsets for lag tools: this node lacks a right. Reading continues",
            metadata: ["error": "\(refusal)"])
    }
}

extension RDClient {
    /// Sends a group's offsets without waiting for the answer. For a client of kind `committer`.
    func store(_ positions: [PartitionPosition], topic: String) throws(BusError) {
        let list = rd_kafka_topic_partition_list_new(Int32(positions.count))
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for position in positions {
            rd_kafka_topic_partition_list_add(list, topic, position.partition)?.pointee.offset = position.offset
        }
        let code = rd_kafka_commit_queue(pointer, list, queue, nil, nil)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw context.describe.error(code, doing: "store offsets")
        }
    }

    /// Returns the answers to a committer's requests that have arrived since the last call.
    func offsetAnswers(group: String, timeout: Duration = .zero) -> (isStored: Bool, errors: [BusError]) {
        var isStored = false
        var errors: [BusError] = []
        func add(_ code: rd_kafka_resp_err_t, _ reason: String?) {
            guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
            let isOfGroup = code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED
            errors.append(
                context.describe.error(
                    code, doing: "store the offsets of group \(group)", reason: reason,
                    lacking: isOfGroup ? KafkaRight(.read, .group(group)) : nil))
        }
        // Nothing else serves the main queue.
        serve()
        _ = context.takeFailures()
        var wait = timeout
        while let event = rd_kafka_queue_poll(queue, wait.millisecondsClamped) {
            let code = rd_kafka_event_error(event)
            isStored = isStored || code == RD_KAFKA_RESP_ERR_NO_ERROR
            add(code, nil)
            rd_kafka_event_destroy(event)
            wait = .zero
        }
        // The client first looks up the group's coordinator, and reports errors of that lookup in the way it does for
        // consumers.
        while let message = rd_kafka_consumer_poll(pointer, 0) {
            add(message.pointee.err, rd_kafka_message_errstr(message).map { String(cString: $0) })
            rd_kafka_message_destroy(message)
        }
        return (isStored, errors)
    }
}
