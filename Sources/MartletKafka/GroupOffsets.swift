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
        /// The group of the client.
        var group = ""
        /// What the broker should store, and for which group.
        var wanted: [PartitionPosition] = []
        var wantedGroup = ""
        /// What was sent last. Empty if the broker did not store it.
        var sent: [PartitionPosition] = []
        var sentAt: ContinuousClock.Instant?
        /// The time until which nothing is sent, after a failure.
        var pausesUntil: ContinuousClock.Instant?
    }

    private let topic: String
    private let logger: Logger
    private let retryInterval: Duration
    private let makeClient: @Sendable (_ group: String) throws(BusError) -> RDClient
    private let state = Mutex(State())

    /// After this long without a change, the connections are closed.
    private static let idleTime = Duration.seconds(30)
    /// How long to wait before a missing right is tried again.
    private static let pause = Duration.seconds(600)

    /// - Parameter retryInterval: how long to wait before offsets are sent again that the broker did not store.
    init(
        topic: String, logger: Logger, retryInterval: Duration = .seconds(10),
        makeClient: @escaping @Sendable (_ group: String) throws(BusError) -> RDClient
    ) {
        self.topic = topic
        self.logger = logger
        self.retryInterval = retryInterval
        self.makeClient = makeClient
    }

    /// Sends the offsets without waiting for the answer, if they have changed.
    func publish(_ positions: [PartitionPosition], of node: String) {
        let now = ContinuousClock.now
        state.withLock { state in
            hear(&state, now)
            state.wanted = positions.sorted { $0.partition < $1.partition }
            state.wantedGroup = KafkaRight.group(of: node)
            sendIfDue(&state, now)
        }
    }

    /// Sends the last offsets again if the broker did not store them, and closes the connections if nothing has changed
    /// for a while. Call this from time to time.
    func rest() {
        let now = ContinuousClock.now
        let idle = state.withLock { state -> RDClient? in
            hear(&state, now)
            sendIfDue(&state, now)
            guard state.client != nil, let sentAt = state.sentAt, now - sentAt > Self.idleTime else { return nil }
            return state.client.take()
        }
        // The client is destroyed here, outside the lock.
        withExtendedLifetime(idle) {}
    }

    func close() {
        let client = state.withLock { $0.client.take() }
        withExtendedLifetime(client) {}
    }

    private func sendIfDue(_ state: inout State, _ now: ContinuousClock.Instant) {
        guard !state.wanted.isEmpty, state.wanted != state.sent || state.wantedGroup != state.group else { return }
        guard state.pausesUntil.map({ $0 <= now }) ?? true else { return }
        do throws(BusError) {
            try send(&state)
            state.sent = state.wanted
            state.sentAt = now
            state.pausesUntil = nil
        } catch {
            state.pausesUntil = now + retryInterval
            logger.debug("\(error)")
        }
    }

    private func send(_ state: inout State) throws(BusError) {
        if state.wantedGroup != state.group { state.client = nil }
        if state.client == nil { state.client = try makeClient(state.wantedGroup) }
        state.group = state.wantedGroup
        try state.client?.store(state.wanted, topic: topic)
    }

    /// Handles the broker's answers: what it did not store is sent again after a pause. Reports a missing right once,
    /// and doesn't try it again for a while.
    private func hear(_ state: inout State, _ now: ContinuousClock.Instant) {
        guard let client = state.client else { return }
        let errors = client.offsetAnswers(group: state.group).errors
        guard let first = errors.first else { return }
        state.sent = []
        guard let refusal = errors.last(where: { $0.code == .unauthorized }) else {
            state.pausesUntil = now + retryInterval
            return logger.debug("\(first)")
        }
        state.client = nil
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
