import MartletBus
import Synchronization

/// The client that a consumer reads with, and the successor that takes over once there is nothing more to read.
///
/// A client sends a broker its next fetch only after the last one was answered, and each fetch covers all partitions.
/// While a broker holds a fetch for a minute, a newly assigned partition is not part of it, and has to wait. So the
/// patient client gets the partitions while the present client still reads them. It takes over when it has reported
/// something for each partition: from then on, each of its fetches covers them all (docs/decisions/0048). If it is not
/// known whether the brokers answer a held fetch as soon as a message arrives, the next message has to show it first:
/// both clients must receive it at once (0049).
struct ReadingClients {
    private(set) var client: RDClient
    private var succession: Succession?
    /// The client that will take over.
    var successor: RDClient? { succession?.client }
    /// Signaled when any of the clients has something to read.
    let wake: WakeSignal
    /// The positions that were last stored for the statistics.
    var noted: [PartitionPosition] = []
    private(set) var isPatient = false
    /// The partitions being read.
    private var reading: Set<Int32> = []
    /// The partitions being read whose end was reached.
    private var ended: Set<Int32> = []
    /// When the next successor may be made.
    private var successionAt: ContinuousClock.Instant?
    private let wakeups: FetchWakeups
    let makeClient: @Sendable (_ isPatient: Bool) throws(BusError) -> RDClient
    private let handsOver: Bool
    private let pause: Duration

    /// How long after the end of all partitions was reached a patient client is created. A consumer that only reads to
    /// the end needs none.
    static let firstPause = Duration.seconds(10)
    /// How long after one successor was created the next one may be created.
    private static let nextPause = Duration.seconds(60)

    /// The successor client and its state.
    private struct Succession {
        let client: RDClient
        let madeAt: ContinuousClock.Instant
        /// The partitions for which it has reported nothing yet.
        var awaited: Set<Int32>
        var trial: Trial?
        /// When the last message since its creation came, and the number of messages that showed nothing.
        var messageAt: ContinuousClock.Instant?
        var uselessCount = 0
    }

    /// A message that only one of the two clients has received.
    private struct Trial {
        var position: PartitionPosition
        var isOfSuccessor: Bool
        var at: ContinuousClock.Instant
        /// How long the consumer has waited for messages since then.
        var waited = Duration.zero
    }

    /// How long the topic must be quiet before a message can show whether the brokers answer at once.
    static let quiet = Duration.seconds(2)
    /// The maximum number of messages that are read twice without showing anything.
    static let uselessMax = 100
    /// Both clients received a message at once if the second copy arrives within this time.
    static let atOnce = Duration.milliseconds(100)
    /// A broker that answers at once has done so by the time that the consumer has waited for this long.
    static let late = Duration.seconds(2)
    /// This long after the successor was created, its fetch has reached the broker.
    static let settling = Duration.seconds(5)

    /// - Parameters:
    ///   - handsOver: false if a successor would gain nothing.
    ///   - pause: the time between reaching the end of all partitions and creating a successor.
    ///   - wakeups: what is known about how the brokers answer.
    init(
        wake: WakeSignal, handsOver: Bool, pause: Duration = firstPause, wakeups: FetchWakeups,
        makeClient: @escaping @Sendable (_ isPatient: Bool) throws(BusError) -> RDClient
    ) throws(BusError) {
        self.wake = wake
        self.handsOver = handsOver
        self.pause = pause
        self.wakeups = wakeups
        self.makeClient = makeClient
        client = try makeClient(false)
    }

    /// Reads exactly these partitions from now on, each from its offset.
    mutating func read(_ positions: [PartitionPosition]) throws(BusError) {
        succession = nil
        // The broker may hold a fetch of the patient client, and would learn of new partitions only after that.
        if isPatient { client = try makeClient(false) }
        isPatient = false
        reading = Set(positions.map(\.partition))
        ended = []
        successionAt = nil
        try client.begin(positions)
    }

    /// Notes what was read, and creates a successor when it is time.
    ///
    /// - Parameters:
    ///   - positions: the next offset to read of each partition.
    ///   - touched: the partitions that messages came from.
    /// - Returns: the ends that were reached, if the client itself would report them only later.
    mutating func note(
        _ events: [ConsumerEvent], positions: [Int32: Int64], touched: Set<Int32>
    ) -> [ConsumerEvent] {
        for case .endOfPartition(let position) in events { ended.insert(position.partition) }
        if isPatient {
            return touched.sorted().compactMap { partition in
                guard let next = positions[partition], client.knownEnd(of: partition) == next else { return nil }
                let end = PartitionPosition(partition: partition, offset: next)
                return events.contains(.endOfPartition(end)) ? nil : .endOfPartition(end)
            }
        }
        guard handsOver, wakeups.areImmediate != false, succession == nil, !reading.isEmpty,
            ended.isSuperset(of: reading)
        else { return [] }
        let now = ContinuousClock.now
        // A trial begins in a quiet phase: while messages follow each other closely, a fetch finds some at once.
        if wakeups.areImmediate == nil, !touched.isEmpty, let due = successionAt {
            successionAt = max(due, now + min(pause, Self.quiet))
        }
        guard let due = successionAt else {
            successionAt = now + pause
            return []
        }
        guard now >= due else { return [] }
        successionAt = now + Self.nextPause
        let next = positions.map { PartitionPosition(partition: $0.key, offset: $0.value) }
        // If that is not possible, reading continues as before.
        guard let made = try? makeClient(true), (try? made.begin(next)) != nil else { return [] }
        made.context.isSecond.store(true, ordering: .relaxed)
        succession = Succession(client: made, madeAt: now, awaited: reading)
        return []
    }

    /// The messages and events that both clients have received since the last call.
    struct Heard {
        /// The partitions for which the successor has reported something.
        var partitions: Set<Int32> = []
        /// False if the successor has failed.
        var isSound = true
        /// The messages that the present client has received.
        var messages: [PartitionPosition] = []
        /// The messages that the successor has received.
        var messagesOfSuccessor: [PartitionPosition] = []
        /// How long the consumer has waited for them.
        var waited = Duration.zero
    }

    /// Handles the messages and events of both clients, and lets the successor take over when it is ready.
    ///
    /// - Returns: the client that is no longer used, if any.
    mutating func hear(_ heard: Heard, now: ContinuousClock.Instant = .now) -> RDClient? {
        guard var succession else { return nil }
        succession.awaited.subtract(heard.partitions)
        // Another consumer may have learned that a successor is useless.
        guard heard.isSound, wakeups.areImmediate != false,
            wakeups.areImmediate == true || judge(heard, &succession, now)
        else {
            self.succession = nil
            return succession.client
        }
        guard succession.awaited.isEmpty, wakeups.areImmediate == true else {
            self.succession = succession
            return nil
        }
        let before = client
        client = succession.client
        client.context.takeOver(before.context)
        client.note(noted)
        self.succession = nil
        isPatient = true
        return before
    }

    /// Returns whether the broker holds a fetch of the successor.
    func isOnTrial(at now: ContinuousClock.Instant) -> Bool {
        succession.map { $0.madeAt + Self.settling <= now } ?? false
    }

    /// Learns from a message whether the brokers answer held fetches at once.
    ///
    /// - Returns: false if this successor can't show anything more.
    private func judge(_ heard: Heard, _ succession: inout Succession, _ now: ContinuousClock.Instant) -> Bool {
        guard var trial = succession.trial else {
            let first = heard.messages.first ?? heard.messagesOfSuccessor.first
            guard let first else { return true }
            let isQuiet = succession.messageAt.map { now - $0 >= Self.quiet } ?? true
            succession.messageAt = now
            guard isOnTrial(at: now), isQuiet else {
                succession.uselessCount += heard.messages.count
                return succession.uselessCount <= Self.uselessMax
            }
            let isOfSuccessor = heard.messages.isEmpty
            if !isOfSuccessor, heard.messagesOfSuccessor.contains(first) {
                wakeups.areImmediate = true
            } else {
                succession.trial = Trial(position: first, isOfSuccessor: isOfSuccessor, at: now)
            }
            return true
        }
        let others = trial.isOfSuccessor ? heard.messages : heard.messagesOfSuccessor
        if others.contains(trial.position) {
            guard now - trial.at <= Self.atOnce else { return false }
            wakeups.areImmediate = true
            return true
        }
        trial.waited += heard.waited
        succession.trial = trial
        guard trial.waited > Self.late else { return true }
        guard !trial.isOfSuccessor, reading.count == 1 || !succession.awaited.contains(trial.position.partition) else {
            // The held fetch may not include this partition.
            succession.trial = nil
            return true
        }
        wakeups.areImmediate = false
        return false
    }
}
