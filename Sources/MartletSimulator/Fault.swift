/// What can go wrong in a simulation.
public enum Fault: String, Sendable, CaseIterable, Comparable {
    /// A node loses its memory between two steps, and starts again from its file.
    case crash
    /// A node dies within a step: at a call of the bus, or at any write to its file.
    case death
    /// The broker stores messages whose acknowledgement never comes.
    case lostAcknowledgement = "lost-acknowledgement"
    /// Messages are in the topic more than once.
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
    /// The topic no longer has its oldest messages, which every node has read, or a snapshot has.
    case prune
    /// All messages are gone, and the topic begins again at its first offset.
    case wipe
    /// The topic is made anew with more partitions, or is given more.
    case recreate
    /// The broker forgets the newest messages of a partition, although it had acknowledged them.
    case forget
    /// Copies of messages come that are cut short or corrupted.
    case corruption
    /// Transactions go in chunks, and those of several sendings are mixed.
    case chunks
    /// Other programs write to the files.
    case foreign
    /// The schema changes in mid-run, on each node at another time. For Martlet's own schema only.
    case upgrade
    /// Rows that were deleted are forgotten after seconds, and a node is away for longer.
    case collect
    /// A node's disk has hardly any room for a while.
    case diskFull = "disk-full"
    /// A node's file is replaced by an older copy of itself.
    case restore
    /// A node's file is copied, and the copy goes on as another node.
    case copy
    /// When all is over, files lose rows, tombstones and clocks behind Martlet's back, and the nodes' checks have to
    /// mend that.
    case damage

    public static func < (a: Fault, b: Fault) -> Bool { a.rawValue < b.rawValue }
}
