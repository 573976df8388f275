import CRdKafka
import Foundation
import MartletBus
import MartletCore

/// Turns librdkafka's error codes into ``/MartletBus/BusError``s that tell an operator what to do.
struct RDErrorDescriber: Sendable {
    var topic: String
    var bootstrapServers: String
    /// Whether the client logs in (SASL).
    var logsIn = false
    /// The name by which the brokers know the user, if known here.
    var user: String?
    /// What the client does with the topic. A denied right is taken to be the one for this operation.
    var operation = KafkaRight.Operation.describe

    /// - Parameters:
    ///   - doing: what failed, phrased to follow "could not ...".
    ///   - lacking: the right that the operation needs. Nil: ``operation`` on the topic.
    func error(
        _ code: rd_kafka_resp_err_t, doing: String, reason: String? = nil, lacking: KafkaRight? = nil
    ) -> BusError {
        let (busCode, isRetriable) = classify(code)
        let text = reason.flatMap { $0.isEmpty ? nil : $0 } ?? String(cString: rd_kafka_err2str(code))
        return BusError(
            busCode, "could not \(doing): \(text)", hint: hint(busCode, code, lacking), underlyingCode: code.rawValue,
            isRetriable: isRetriable)
    }

    /// Returns a describer for another topic than the configured one.
    func of(_ topic: String) -> RDErrorDescriber {
        var other = self
        other.topic = topic
        return other
    }

    /// Explains a connection that ended before anything was received, if the client didn't log in.
    ///
    /// A broker that requires a login closes a connection without one. If the client reads this end, librdkafka
    /// explains what it may mean. If the client was sending something at that moment, it gets a broken pipe instead.
    /// Which of the two happens is a matter of chance.
    func explained(_ reason: String) -> String {
        guard !logsIn, Self.hangUps.contains(where: reason.contains) else { return reason }
        return
            "\(reason): the broker closed the connection: verify that security.protocol is correctly configured "
            + "(connecting to a SSL listener?), broker might require SASL authentication"
    }

    /// Returns whether a line of librdkafka's log reports that a broker closed the connection within a second, before
    /// it answered anything.
    ///
    /// librdkafka 2.16 has no error for this (2.8 has one).
    func isHangUp(facility: String, _ message: String) -> Bool {
        guard facility == "FAIL", message.contains(Self.closed), let after = message.range(of: "(after ") else {
            return false
        }
        let milliseconds = message[after.upperBound...].prefix { $0.isNumber }
        return Int(milliseconds).map { $0 < 1000 } ?? false
    }

    private static let closed = "connection closed by peer"
    /// The texts of librdkafka and of the system, since there is no other information about these cases.
    private static let hangUps = [EPIPE, ECONNRESET].map { String(cString: strerror($0)) } + [closed]

    func classify(_ code: rd_kafka_resp_err_t) -> (code: BusError.Code, isRetriable: Bool) {
        switch code {
        case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__RESOLVE,
            RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__WAIT_COORD,
            RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE,
            RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
            (.unreachable, true)
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
            (.unknownTopic, false)
        case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
            (.alreadyExists, false)
        case RD_KAFKA_RESP_ERR__QUEUE_FULL:
            (.queueFull, true)
        case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
            (.messageTooLarge, false)
        case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
            (.timedOut, true)
        case RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR__FENCED, RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE,
            RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
            RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
            (.fatal, false)
        case RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, RD_KAFKA_RESP_ERR__DESTROY:
            (.closed, false)
        case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR__SSL,
            RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM,
            RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
            RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
            RD_KAFKA_RESP_ERR_SECURITY_DISABLED:
            (.unauthorized, false)
        case RD_KAFKA_RESP_ERR__INVALID_ARG, RD_KAFKA_RESP_ERR_INVALID_CONFIG, RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
            RD_KAFKA_RESP_ERR_INVALID_PARTITIONS, RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR,
            RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION:
            (.configuration, false)
        case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            RD_KAFKA_RESP_ERR_NOT_CONTROLLER, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
            RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
            RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
            RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH, RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH,
            RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
            (.other, true)
        default:
            (.other, false)
        }
    }

    /// Returns how to grant a right, in one line.
    func remedy(_ right: KafkaRight) -> String {
        "Grant this user \(right): "
            + right.grantCommand(to: "User:\(user ?? "NAME")", bootstrapServers: bootstrapServers)
    }

    private func hint(_ code: BusError.Code, _ raw: rd_kafka_resp_err_t, _ lacking: KafkaRight?) -> String {
        switch code {
        case .unreachable:
            "Check that \(bootstrapServers) is the brokers' address, that they run, that the addresses they advertise "
                + "can be reached from here, and that they expect this security protocol (and no client certificate)"
        case .unknownTopic:
            "Check the name, or create the topic: martlet topic create \(ShellWord.quoted(topic))"
        case .unauthorized:
            switch raw {
            case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
                remedy(lacking ?? KafkaRight(operation, .topic(topic)))
            case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
                lacking.map(remedy) ?? "Grant this user Read on the group"
            case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
                remedy(lacking ?? KafkaRight(.idempotentWrite, .cluster))
            case RD_KAFKA_RESP_ERR__SSL:
                "Check that the brokers expect TLS there, that their certificate is from the configured authority "
                    + "and names this host, and this node's own certificate, if they ask for one"
            default:
                "Check the security protocol, mechanism, user and password"
            }
        case .messageTooLarge:
            "Raise the topic's max.message.bytes, or lower messageMaxBytes so that large transactions are split"
        case .timedOut:
            "Check the brokers, or raise the delivery timeout"
        case .fatal:
            "Martlet recreates the producer automatically"
        case .other where raw == RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
            "Bring back brokers: the topic has fewer in-sync replicas than its min.insync.replicas"
        default:
            ""
        }
    }
}
