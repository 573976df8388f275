import MartletSync

/// The writing end of a ``SimulatedLink``. The scheduler decides when messages reach the broker, and when their
/// acknowledgements arrive. Safe because a simulation runs on one thread.
final class SimulatedProducer: BusProducer, @unchecked Sendable {
    private unowned let link: SimulatedLink
    private let acknowledge: @Sendable (Acknowledgement) -> Void
    /// Messages that the broker doesn't have yet.
    private(set) var queue: [OutgoingMessage] = []
    /// Messages that the broker has, but hasn't acknowledged.
    private var stored: [Acknowledgement] = []
    private var isClosed = false
    private var isFenced = false

    init(_ link: SimulatedLink, _ acknowledge: @escaping @Sendable (Acknowledgement) -> Void) {
        self.link = link
        self.acknowledge = acknowledge
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        try link.call()
        if isClosed { throw BusError(.closed, "the producer is closed") }
        if isFenced { throw BusError(.fatal, "the producer is fenced") }
        guard queue.count + stored.count < link.queueLimit else {
            throw BusError(.queueFull, "the queue is full", isRetriable: true)
        }
        if link.isImmediate {
            guard !link.isCut else { throw SimulatedLink.unreachable }
            let position = link.log.append(message)
            return acknowledge(Acknowledgement(tag: message.tag, result: .success(position)))
        }
        link.log.published.note(message)
        queue.append(message)
        try link.call()
    }

    /// Delivers at most this many messages to the broker.
    func store(_ count: Int) {
        guard !link.isCut else { return }
        for message in queue.prefix(count) {
            if link.corruptCount > 0 {
                link.corruptCount -= 1
                link.log.append(Corruption.copy(of: message, &link.random))
            }
            link.log.published.noteStored(message)
            stored.append(Acknowledgement(tag: message.tag, result: .success(link.log.append(message))))
        }
        queue.removeFirst(min(count, queue.count))
    }

    /// Delivers the broker's acknowledgements.
    func answer() {
        guard !link.isCut else { return }
        let answers = stored
        stored = []
        for answer in answers { acknowledge(answer) }
    }

    /// Loses the broker's acknowledgements, after which the producer gives up.
    func loseAnswers() {
        let lost = stored.map(\.tag) + queue.map(\.tag)
        stored = []
        queue = []
        isFenced = true
        for tag in lost {
            acknowledge(
                Acknowledgement(tag: tag, result: .failure(BusError(.timedOut, "no answer", isRetriable: true))))
        }
    }

    /// Ends the process, after some of its queued messages have arrived.
    func abandon(storing count: Int) {
        guard !isClosed else { return }
        store(count)
        isClosed = true
        queue = []
        stored = []
    }

    func flush(timeout: Duration) -> Bool { queue.isEmpty && stored.isEmpty }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        let tags = stored.map(\.tag) + queue.map(\.tag)
        stored = []
        queue = []
        for tag in tags { acknowledge(Acknowledgement(tag: tag, result: .failure(BusError(.closed, "closed")))) }
    }
}

/// Corrupts a message in the way of a faulty sender or disk.
enum Corruption {
    static func copy(of message: OutgoingMessage, _ random: inout SplitMix) -> OutgoingMessage {
        var copy = message
        switch random.below(4) {
        case 0: copy.payload.removeLast(min(copy.payload.count, 1 + random.below(copy.payload.count)))
        case 1: if !copy.payload.isEmpty { copy.payload[random.below(copy.payload.count)] ^= 1 << random.below(8) }
        case 2: copy.headers.removeAll { $0.name == PublishedHeader.origin }
        default: copy.payload = random.bytes(1 + random.below(40))
        }
        return copy
    }
}
