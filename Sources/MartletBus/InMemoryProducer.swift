import Dispatch
import Synchronization

/// The writing end of an ``InMemoryBus``. `send` stores a message before it returns. Acknowledgements come on the
/// producer's own thread, as with every bus.
final class InMemoryProducer: BusProducer {
    private let log: InMemoryLog
    private let topics: InMemoryTopics
    private let acknowledge: @Sendable (Acknowledgement) -> Void
    private let queue = DispatchQueue(label: "martlet.in-memory-producer")
    private let inFlight = DispatchGroup()
    private let isClosed = Mutex(false)

    init(
        _ log: InMemoryLog, _ topics: InMemoryTopics, acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) {
        self.log = log
        self.topics = topics
        self.acknowledge = acknowledge
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        try isClosed.withLock { isClosed throws(BusError) in
            guard !isClosed else { throw BusError(.closed, "the producer is closed") }
            let result: Result<PartitionPosition, BusError> =
                if let log = message.topic.map({ topics[$0] }) ?? log {
                    .success(log.append(message))
                } else {
                    .failure(BusError(.unknownTopic, "there is no topic \(message.topic ?? "")"))
                }
            queue.async(group: inFlight) { [acknowledge] in
                acknowledge(Acknowledgement(tag: message.tag, result: result))
            }
        }
    }

    func flush(timeout: Duration) -> Bool {
        inFlight.wait(timeout: .now() + timeout / .seconds(1)) == .success
    }

    func close() {
        isClosed.withLock { $0 = true }
        inFlight.wait()
    }
}
