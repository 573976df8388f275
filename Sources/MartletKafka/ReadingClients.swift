import MartletBus
import Synchronization

/// The client that a consumer reads with, and the one that takes over from it once there is nothing more to read.
///
/// A client asks a broker again only when it was answered, and asks for all partitions at once. While a broker holds a
/// question for a minute, a partition that begins to be read is not in it, and waits. So the patient client is given
/// the partitions beside the one that reads, and takes over when it has said something of each: from then on each of
/// its questions has them all (docs/decisions/0048). Where it is not known whether the brokers answer a question that
/// they hold as soon as a message comes, the next message has to show it first: both clients must have it at once
/// (0049).
struct ReadingClients {
    private(set) var client: RDClient
    private var succession: Succession?
    /// The client that is to take over.
    var successor: RDClient? { succession?.client }
    /// Signaled when any of them has something.
    let wake: WakeSignal
    /// What was last noted for the statistics.
    var noted: [PartitionPosition] = []
    private(set) var isPatient = false
    /// The partitions that are read.
    private var reading: Set<Int32> = []
    /// Those of them whose end was reached.
    private var ended: Set<Int32> = []
    /// When the next successor may be made.
    private var successionAt: ContinuousClock.Instant?
    private let answers: FetchAnswers
    let makeClient: @Sendable (_ isPatient: Bool) throws(BusError) -> RDClient
    private let handsOver: Bool
    private let pause: Duration

    /// How long after the end of all partitions was reached a patient client is made: who only reads to the end needs
    /// none.
    static let firstPause = Duration.seconds(10)
    /// How long after one has failed the next one is made.
    private static let nextPause = Duration.seconds(60)

    /// The client that is to take over, and what is known of it.
    private struct Succession {
        let client: RDClient
        let madeAt: ContinuousClock.Instant
        /// The partitions of which it has said nothing.
        var awaited: Set<Int32>
        var trial: Trial?
        /// When the last message came since it was made, and how many came that show nothing.
        var messageAt: ContinuousClock.Instant?
        var uselessCount = 0
    }

    /// A message that only one of both clients has.
    private struct Trial {
        var position: PartitionPosition
        var isOfSuccessor: Bool
        var at: ContinuousClock.Instant
        /// For how long the consumer has waited for messages since then.
        var waited = Duration.zero
    }

    /// How long no message may have come before the one that shows it.
    static let quiet = Duration.seconds(2)
    /// So many messages are read twice for nothing.
    static let uselessMax = 100
    /// Both clients have a message at once where its second copy is there so soon.
    static let atOnce = Duration.milliseconds(100)
    /// A broker that answers at once has done so when it was waited for so long.
    static let late = Duration.seconds(2)
    /// So long after it was made, a question of the successor has reached the broker.
    static let settling = Duration.seconds(5)

    /// - Parameters:
    ///   - handsOver: false where nothing is gained by it.
    ///   - pause: after the end of all partitions was reached.
    ///   - answers: what is known of the brokers.
    init(
        wake: WakeSignal, handsOver: Bool, pause: Duration = firstPause, answers: FetchAnswers,
        makeClient: @escaping @Sendable (_ isPatient: Bool) throws(BusError) -> RDClient
    ) throws(BusError) {
        self.wake = wake
        self.handsOver = handsOver
        self.pause = pause
        self.answers = answers
        self.makeClient = makeClient
        client = try makeClient(false)
    }

    /// Reads exactly these partitions from now on, each from its offset.
    mutating func read(_ positions: [PartitionPosition]) throws(BusError) {
        succession = nil
        // The broker may hold a question of the patient one, and would hear of others only then.
        if isPatient { client = try makeClient(false) }
        isPatient = false
        reading = Set(positions.map(\.partition))
        ended = []
        successionAt = nil
        try client.begin(positions)
    }

    /// Takes note of what was read.
    ///
    /// - Parameters:
    ///   - positions: what is read next of each partition.
    ///   - touched: the partitions that messages came of.
    /// - Returns: the ends that were reached, where the client itself would say so only later.
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
        guard handsOver, answers.areImmediate != false, succession == nil, !reading.isEmpty,
            ended.isSuperset(of: reading)
        else { return [] }
        let now = ContinuousClock.now
        // A trial begins where it is quiet: while messages come one after the other, a question finds some there.
        if answers.areImmediate == nil, !touched.isEmpty, let due = successionAt {
            successionAt = max(due, now + min(pause, Self.quiet))
        }
        guard let due = successionAt else {
            successionAt = now + pause
            return []
        }
        guard now >= due else { return [] }
        successionAt = now + Self.nextPause
        let next = positions.map { PartitionPosition(partition: $0.key, offset: $0.value) }
        // Where it can't be, reading goes on as it is.
        guard let made = try? makeClient(true), (try? made.begin(next)) != nil else { return [] }
        made.context.isSecond.store(true, ordering: .relaxed)
        succession = Succession(client: made, madeAt: now, awaited: reading)
        return []
    }

    /// What the client that reads and the successor have said since they were last asked.
    struct Heard {
        /// Partitions of which the successor has said something.
        var partitions: Set<Int32> = []
        /// False where the successor has failed.
        var isSound = true
        /// The messages that the client has.
        var messages: [PartitionPosition] = []
        /// The messages that the successor has.
        var messagesOfSuccessor: [PartitionPosition] = []
        /// For how long the consumer has waited for them.
        var waited = Duration.zero
    }

    /// Takes note of what both clients have said.
    ///
    /// - Returns: the client that is used no longer, if one is not.
    mutating func hear(_ heard: Heard, now: ContinuousClock.Instant = .now) -> RDClient? {
        guard var succession else { return nil }
        succession.awaited.subtract(heard.partitions)
        // Another consumer may have learned that it is in vain.
        guard heard.isSound, answers.areImmediate != false,
            answers.areImmediate == true || judge(heard, &succession, now)
        else {
            self.succession = nil
            return succession.client
        }
        guard succession.awaited.isEmpty, answers.areImmediate == true else {
            self.succession = succession
            return nil
        }
        let before = client
        before.context.isSecond.store(true, ordering: .relaxed)
        client = succession.client
        client.context.isSecond.store(false, ordering: .relaxed)
        client.note(noted)
        self.succession = nil
        isPatient = true
        return before
    }

    /// True where the broker holds a question of the successor.
    func isOnTrial(at now: ContinuousClock.Instant) -> Bool {
        succession.map { $0.madeAt + Self.settling <= now } ?? false
    }

    /// Learns from the first message whether the brokers answer at once.
    ///
    /// - Returns: false where there is nothing more to learn from this successor.
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
                answers.areImmediate = true
            } else {
                succession.trial = Trial(position: first, isOfSuccessor: isOfSuccessor, at: now)
            }
            return true
        }
        let others = trial.isOfSuccessor ? heard.messages : heard.messagesOfSuccessor
        if others.contains(trial.position) {
            guard now - trial.at <= Self.atOnce else { return false }
            answers.areImmediate = true
            return true
        }
        trial.waited += heard.waited
        succession.trial = trial
        guard trial.waited > Self.late else { return true }
        guard !trial.isOfSuccessor, reading.count == 1 || !succession.awaited.contains(trial.position.partition) else {
            // The question that the broker holds may not have this partition.
            succession.trial = nil
            return true
        }
        answers.areImmediate = false
        return false
    }
}
