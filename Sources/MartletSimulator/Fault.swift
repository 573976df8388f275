/// A fault that a simulation can inject.
public enum Fault: String, Sendable, CaseIterable, Comparable {
    /// A node loses its memory between two steps, and restarts from its file.
    case crash
    /// A node dies within a step: at a call of the bus, or at any write to its file.
    case death
    /// The broker stores messages whose acknowledgement never arrives.
    case lostAcknowledgement = "lost-acknowledgement"
    /// The topic contains messages more than once.
    case duplicates
    /// Partitions are read in any order, a few messages of each at a time.
    case reordering
    /// Messages wait in the producer's queue, and reading finds nothing for a while.
    case delay
    /// A node has no network for a while.
    case partition
    /// A node does nothing of its own accord for a while.
    case slow
    /// Clocks jump, run fast, or start in 1970.
    case clocks
    /// The topic loses its oldest messages, which every node has read or a snapshot covers.
    case prune
    /// All messages are lost, and the topic starts again at its first offset.
    case wipe
    /// The topic is recreated with more partitions, or gets an additional one.
    case recreate
    /// The broker loses the newest messages of a partition, although it had acknowledged them.
    case forget
    /// Truncated or corrupted copies of messages arrive.
    case corruption
    /// Transactions are sent in chunks, and the chunks of several attempts are mixed.
    case chunks
    /// Other programs write to the files.
    case foreign
    /// The schema changes during the run, on each node at a different time. For Martlet's own schema only.
    case upgrade
    /// Tombstones are garbage-collected after seconds, and a node is offline for longer.
    case collect
    /// A node's disk has hardly any space for a while.
    case diskFull = "disk-full"
    /// A node's file is replaced by an older copy of itself.
    case restore
    /// A node's file is copied, and the copy continues as another node.
    case copy
    /// After the steps, files lose rows, tombstones and clocks behind Martlet's back, and the nodes' anti-entropy has
    /// to repair them.
    case damage
    /// Connections are lost every few polls.
    case lostConnections = "lost-connections"
    /// Partitions have offsets without a message, like those of the markers that end Kafka's transactions.
    case controlRecords = "control-records"
    /// The topic is recreated with fewer partitions.
    case fewerPartitions = "fewer-partitions"
    /// Snapshots disappear, also while a node loads one.
    case lostSnapshots = "lost-snapshots"
    /// A store takes another node ID, also while some of what it has made is only partly enqueued or sent.
    case fork
    /// A node writes under a clock that is a day ahead, and is restamped later.
    case restamp

    /// Faults that are off by default, with the reason. The only place where faults are disabled.
    package static let off: [Fault: String] = [
        .lostConnections: isNew, .controlRecords: isNew, .fewerPartitions: isNew, .lostSnapshots: isNew, .fork: isNew,
        .restamp: isNew,
    ]
    private static let isNew = "not run over thousands of seeds yet"

    /// The faults that are used by default.
    public static let standard = Set(allCases).subtracting(off.keys)

    public static func < (a: Fault, b: Fault) -> Bool { a.rawValue < b.rawValue }
}
