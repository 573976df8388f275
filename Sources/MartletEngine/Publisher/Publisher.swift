import Dispatch
import Logging
public import MartletBus
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire
import Metrics
import Synchronization

/// Streams this node's local transactions to the topic.
///
/// Enqueue, send, wait for acknowledgements, store how far they go. Everything else that can happen (a lost connection,
/// a fenced producer, a crash) leads back to the last stored acknowledgement: the publisher sends the same bytes again,
/// and receivers drop duplicates by origin and sequence.
///
/// Runs on a thread that the caller provides; see `run()`.
public final class Publisher: Sendable {
    private let session: ReplicaSession
    private let messageGuard: MessageGuard
    private let configuration: SyncConfiguration
    private let bus: any Bus
    private let outbox: OutboxReader
    private let log: Logger
    private let progressInterval: Duration
    private let limit: MessageLimit
    /// The signal that wakes the publisher. Signal it when the store has changed.
    public let wake = WakeSignal()
    // Safe because only the thread that runs `step` touches it, and one that it waits for.
    nonisolated(unsafe) private var state: State
    private let inbox = Mutex<[Acknowledgement]>([])
    private let requestedRewind = Mutex<Int64?>(nil)
    private let progress: Mutex<PublisherProgress>
    private let published: Counter
    private let retries: Counter

    private struct State {
        var cycle: PublishCycle
        var storedAt: ContinuousClock.Instant
        var producer: (any BusProducer)?
        /// The last transaction, while the producer's queue has no room for all of its messages.
        var unsent: OutgoingTransaction?
        var backlogReportedAt: ContinuousClock.Instant
    }

    /// How often the log says how much of a long backlog is left.
    private static let backlogInterval = Duration.seconds(5)

    /// See ``init(engine:bus:store:progressInterval:log:metrics:)``.
    init(
        session: ReplicaSession, messageGuard: MessageGuard, configuration: SyncConfiguration, bus: any Bus,
        store: StoreConfiguration, progressInterval: Duration, log: Logger, metrics: any MetricsFactory
    ) throws {
        self.session = session
        self.messageGuard = messageGuard
        self.configuration = configuration
        self.progressInterval = progressInterval
        self.bus = bus
        self.log = log
        outbox = try OutboxReader(
            path: session.path, store: store, readsContexts: configuration.traceHeaders != .never)
        limit = MessageLimit(bus, configured: configuration.maxMessageBytes, now: session.instant)
        let acknowledged = try PublishProgress(session).acknowledged()
        state = State(
            cycle: PublishCycle(acknowledged: acknowledged), storedAt: session.instant() - .seconds(10),
            backlogReportedAt: session.instant())
        progress = Mutex(
            PublisherProgress(acknowledged: acknowledged, sent: acknowledged, advancedAt: session.instant()))
        published = Counter(label: SyncMetricNames.published, factory: metrics)
        retries = Counter(label: SyncMetricNames.publishRetries, factory: metrics)
    }

    /// How far publishing has come. From any thread.
    public var currentProgress: PublisherProgress { progress.withLock { $0 } }

    /// Publishes everything after this sequence again. Callable from any thread; takes effect at the next step.
    public func rewind(to sequence: Int64) {
        requestedRewind.withLock { $0 = min($0 ?? .max, sequence) }
        wake.signal()
    }

    /// Publishes until ``/MartletBus/WakeSignal/stop()`` is called on ``wake``. Then waits, at most for the grace
    /// period, for messages in flight, and stores its progress. Blocks the calling thread.
    public func run(gracePeriod: Duration = .seconds(5)) {
        while !wake.isStopped {
            let didWork = step()
            guard !didWork else { continue }
            if state.cycle.backoff.delay > .zero {
                pause(state.cycle.backoff.delay)
            } else {
                wake.wait(timeout: state.cycle.hasNews ? progressInterval : .seconds(1))
            }
        }
        if state.producer?.flush(timeout: gracePeriod) == false {
            log.info("Stopped with transactions in flight; they are resent at the next start")
        }
        state.producer?.close()
        takeAnswers()
        storeProgress(isFinal: true)
    }

    /// Backs off after a failure. Signals don't end the wait: acknowledgements and commits come by the hundred.
    private func pause(_ delay: Duration) {
        let deadline = ContinuousClock.now + delay
        while !wake.isStopped, ContinuousClock.now < deadline { wake.wait(timeout: deadline - .now) }
    }

    /// Does all work that is possible now.
    ///
    /// - Returns: false when there is nothing to do until the next signal.
    @discardableResult
    public func step() -> Bool {
        do {
            applyRewind()
            takeAnswers()
            storeProgress(isFinal: false)
            guard state.cycle.state == .sending else {
                recover()
                return false
            }
            var (hasMore, entries) = try session.enqueueSome()
            var didSend = false
            // The window bounds this: answers are not taken meanwhile.
            while hasMore, entries.count >= Self.minOverlap, !wake.isStopped {
                let (next, sent) = try enqueueWhileSending(entries)
                (hasMore, entries) = next
                guard sent else { break }
                didSend = true
            }
            if hasMore { try reportBacklog() }
            if try send(entries) { didSend = true }
            state.cycle.succeed()
            if state.cycle.window.isAnswered, state.unsent == nil { progress.withLock { $0.problem = nil } }
            return hasMore || didSend
        } catch let error as BusError {
            return retryLater(error.description, error.code == .fatal)
        } catch  where error is CancellationError && wake.isStopped {
            return false
        } catch {
            return retryLater("\(error)", false)
        }
    }

    /// From how many transactions on a backlog is enqueued and sent on two threads.
    private static let minOverlap = 100

    /// Sends these transactions on another thread, and enqueues the next ones meanwhile.
    private func enqueueWhileSending(
        _ entries: [OutboxEntry]
    ) throws -> (next: (hasMore: Bool, entries: [OutboxEntry]), didSend: Bool) {
        let group = DispatchGroup()
        let sending = Mutex(Result<Bool, any Error>.success(false))
        DispatchQueue.global(qos: .userInitiated).async(group: group) {
            let result = Result { try self.send(entries) }
            sending.withLock { $0 = result }
        }
        let next = Result { try session.enqueueSome() }
        group.wait()
        return (try next.get(), try sending.withLock { try $0.get() })
    }

    private func reportBacklog() throws {
        guard session.instant() - state.backlogReportedAt > Self.backlogInterval else { return }
        state.backlogReportedAt = session.instant()
        let remaining = try PublishProgress(session).unstampedRows()
        log.info("Enqueuing local changes", metadata: ["remaining": "\(remaining)"])
    }

    private func retryLater(_ reason: String, _ needsNewProducer: Bool) -> Bool {
        log.warning("Publishing failed; will retry", metadata: ["reason": "\(reason)"])
        progress.withLock { $0.problem = reason }
        retries.increment()
        if needsNewProducer { dropProducer() }
        state.cycle.fail()
        return false
    }

    private func applyRewind() {
        guard
            let sequence = requestedRewind.withLock({ request in
                defer { request = nil }; return request
            })
        else { return }
        log.warning(
            "Republishing transactions: the topic lost them, or may have", metadata: ["after": "\(sequence)"])
        dropProducer()
        takeAnswers()
        do {
            let kept = try PublishProgress(session).rewind(to: min(sequence, state.cycle.window.acknowledged))
            state.cycle.rewind(to: kept)
            state.unsent = nil
            note()
        } catch {
            rewind(to: sequence)
            _ = retryLater("\(error)", false)
        }
    }

    private func dropProducer() {
        state.producer?.close()
        state.producer = nil
    }

    /// Processes the broker's acknowledgements.
    private func takeAnswers() {
        let answers = inbox.withLock { inbox in
            defer { inbox.removeAll(keepingCapacity: true) }
            return inbox
        }
        for answer in answers {
            if let error = state.cycle.take(answer) { progress.withLock { $0.problem = error.description } }
        }
        if !answers.isEmpty { note() }
    }

    private func note() {
        let window = state.cycle.window
        let count = progress.withLock { progress in
            let count = window.acknowledged - progress.acknowledged
            if count != 0 || progress.inFlightBytes == 0 { progress.advancedAt = session.instant() }
            progress.acknowledged = window.acknowledged
            progress.inFlightBytes = window.inFlightBytes
            progress.sent = window.sent
            return count
        }
        if count > 0 { published.increment(by: count) }
    }

    /// Stores the acknowledged prefix at intervals, because that is a commit of its own. A crash in between costs
    /// duplicates, which receivers drop.
    private func storeProgress(isFinal: Bool) {
        guard state.cycle.hasNews else { return }
        guard isFinal || session.instant() - state.storedAt >= progressInterval else { return }
        do {
            try PublishProgress(session).acknowledge(through: state.cycle.window.acknowledged)
            state.cycle.noteStored()
            state.storedAt = session.instant()
            progress.withLock { $0.problem = nil }
        } catch {
            log.warning(
                "Could not store the publisher's progress; will retry", metadata: ["error": "\(error)"])
        }
    }

    /// After a failure: waits for every answer, then restarts after the acknowledged prefix on a new producer.
    private func recover() {
        dropProducer()
        takeAnswers()
        failUnsent()
        guard state.cycle.state == .drained else { return }
        retries.increment()
        if state.cycle.isTooLarge { limit.noteRefused() }
        if let failure = state.cycle.restart() { report(failure) }
        storeProgress(isFinal: true)
    }

    private func report(_ failure: PublishCycle.Failure) {
        // A separate message, because these numbers change with each attempt: in the warning, they would defeat the
        // suppression of repeated messages.
        log.warning("Transactions not delivered; resending them", metadata: ["error": "\(failure.error)"])
        log.debug(
            "Messages not delivered",
            metadata: ["messages": "\(failure.count)", "from": "\(failure.first)"])
    }

    /// - Parameter fresh: entries that were just enqueued. They need not be read from the outbox if they are next.
    private func send(_ fresh: [OutboxEntry]) throws -> Bool {
        guard try sendRest() else { return false }
        let room = configuration.maxInFlightBytes - state.cycle.window.inFlightBytes
        guard room > 0 else { return false }
        let isNext = fresh.first.map { $0.sequence == state.cycle.window.sent + 1 } ?? false
        let entries =
            isNext ? fresh : try outbox.entries(after: state.cycle.window.sent, maxBytes: room, maxCount: 2000)
        guard !entries.isEmpty else { return false }
        let node = session.node
        messageGuard.refresh()
        limit.refresh()
        var chunker = Chunker(
            maxBytes: messageGuard.room(in: limit.messageBytes), node: node,
            encoding: configuration.encoding)
        let setting = configuration.traceHeaders
        // Set before any of them can be in flight: the consumer reads it to know which messages to wait for.
        if let last = entries.last?.sequence { progress.withLock { $0.sent = max($0.sent, last) } }
        for entry in entries {
            let traced =
                setting != .never || log.followsTransactions ? OutgoingTrace(entry, origin: node, setting) : nil
            let payload = try outbox.open(entry)
            if let traced, log.followsTransactions {
                let sent = TracedTransaction(origin: node, sequence: entry.sequence, trace: traced.trace)
                log.debug("Transaction sent", metadata: sent.metadata)
            }
            // The setting may have changed since it was enqueued.
            if chunker.encoding != payload.encoding {
                chunker = Chunker(maxBytes: chunker.maxBytes, node: node, encoding: payload.encoding)
            }
            let transaction = OutgoingTransaction(
                sequence: entry.sequence, origin: node, payload: payload, chunker: chunker,
                isSealed: messageGuard.seals, trace: traced?.headers ?? [])
            state.cycle.begin(entry.sequence, messages: transaction.rest, bytes: payload.count)
            state.unsent = transaction
            guard try sendRest() else { return true }
        }
        note()
        return true
    }

    /// Sends the remaining messages of the current transaction.
    private func sendRest() throws -> Bool {
        guard state.unsent != nil else { return true }
        let producer = try makeProducer()
        while let message = try state.unsent?.next({ try outbox.bytes($0, of: &$1) }) {
            let sealed = try messageGuard.seal(message, topic: bus.topic, origin: session.node)
            do throws(BusError) {
                try producer.send(sealed)
            } catch  where error.code == .queueFull {
                note()
                return false
            } catch {
                failUnsent(because: error)
                note()
                throw error
            }
            state.unsent?.noteSent()
        }
        state.unsent = nil
        return true
    }

    /// Marks the messages that were never sent as failed, so that every message has an answer.
    private func failUnsent(because error: BusError? = nil) {
        guard let unsent = state.unsent else { return }
        state.cycle.drop(unsent.sequence, messages: unsent.rest, because: error)
        state.unsent = nil
    }

    private func makeProducer() throws(BusError) -> any BusProducer {
        if let producer = state.producer { return producer }
        let producer = try bus.makeProducer(maxBatchBytes: limit.batchBytes) { [inbox = Weak(self)] acknowledgement in
            guard let publisher = inbox.value else { return }
            let isFirst = publisher.inbox.withLock { inbox in
                inbox.append(acknowledgement)
                return inbox.count == 1
            }
            // One signal is enough: the publisher takes all acknowledgements that have arrived by then.
            if isFirst { publisher.wake.signal() }
        }
        state.producer = producer
        return producer
    }
}

/// How far publishing has come.
public struct PublisherProgress: Sendable, Equatable {
    /// The last sequence up to which the broker has acknowledged everything.
    public var acknowledged: Int64
    /// Bytes that were sent and not acknowledged yet.
    public var inFlightBytes = 0
    /// The last sequence that was sent, or is about to be. Those after ``acknowledged`` are still unanswered.
    public var sent: Int64 = 0
    /// When ``acknowledged`` last changed, or when the first message in flight was sent.
    public var advancedAt: ContinuousClock.Instant
    /// The reason why publishing is held up. Nil while nothing holds it up.
    public var problem: String?

    package init(
        acknowledged: Int64, inFlightBytes: Int = 0, sent: Int64 = 0, advancedAt: ContinuousClock.Instant,
        problem: String? = nil
    ) {
        self.acknowledged = acknowledged
        self.inFlightBytes = inFlightBytes
        self.sent = sent
        self.advancedAt = advancedAt
        self.problem = problem
    }
}

/// A weak reference for callbacks of the bus.
private final class Weak<Object: AnyObject & Sendable>: Sendable {
    // Safe because weak references are read atomically, and this one is never written after init.
    nonisolated(unsafe) private(set) weak var value: Object?

    init(_ value: Object) { self.value = value }
}
