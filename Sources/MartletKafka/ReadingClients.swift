import MartletSync
import Synchronization

/// The client that a consumer reads with, and the one that takes over from it once there is nothing more to read.
///
/// A client asks a broker again only when it was answered, and asks for all partitions at once. While a broker holds a question for a minute, a partition
/// that begins to be read is not in it, and waits. So the patient client is given the partitions beside the one that reads, and takes over
/// when it has said something of each: from then on each of its questions has them all (docs/decisions/0048).
struct ReadingClients {
    private(set) var client: RDClient
    private(set) var successor: RDClient?
    /// Signaled when any of them has something.
    let wake: WakeSignal
    /// What was last noted for the statistics.
    var noted: [PartitionPosition] = []
    private(set) var isPatient = false
    /// The partitions that are read.
    private var reading: Set<Int32> = []
    /// Those of them whose end was reached.
    private var ended: Set<Int32> = []
    /// Those of which the successor has said nothing.
    private var awaited: Set<Int32> = []
    /// When the next successor may be made.
    private var successionAt: ContinuousClock.Instant?
    let makeClient: @Sendable (_ isPatient: Bool) throws(BusError) -> RDClient
    private let handsOver: Bool
    private let pause: Duration

    /// How long after the end of all partitions was reached a patient client is made: who only reads to the end needs none.
    static let firstPause = Duration.seconds(10)
    /// How long after one has failed the next one is made.
    private static let nextPause = Duration.seconds(60)

    /// - Parameters:
    ///   - handsOver: false where nothing is gained by it.
    ///   - pause: after the end of all partitions was reached.
    init(
        wake: WakeSignal, handsOver: Bool, pause: Duration = firstPause,
        makeClient: @escaping @Sendable (_ isPatient: Bool) throws(BusError) -> RDClient
    ) throws(BusError) {
        self.wake = wake
        self.handsOver = handsOver
        self.pause = pause
        self.makeClient = makeClient
        client = try makeClient(false)
    }

    /// Reads exactly these partitions from now on, each from its offset.
    mutating func read(_ positions: [PartitionPosition]) throws(BusError) {
        successor = nil
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
        guard handsOver, successor == nil, !reading.isEmpty, ended.isSuperset(of: reading) else { return [] }
        let now = ContinuousClock.now
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
        successor = made
        awaited = reading
        return []
    }

    /// Takes note of what the successor has said something of.
    ///
    /// - Returns: the client that is used no longer, if one is not.
    mutating func hear(_ partitions: Set<Int32>, isSound: Bool) -> RDClient? {
        guard let successor else { return nil }
        guard isSound else {
            self.successor = nil
            return successor
        }
        awaited.subtract(partitions)
        guard awaited.isEmpty else { return nil }
        let before = client
        before.context.isSecond.store(true, ordering: .relaxed)
        successor.context.isSecond.store(false, ordering: .relaxed)
        successor.note(noted)
        client = successor
        self.successor = nil
        isPatient = true
        return before
    }
}
