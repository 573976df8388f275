/// The keys of `_martlet_meta` that syncing sets.
package enum SyncMeta {
    package static let format = "sync_format"
    package static let node = "node"
    package static let nodeName = "node_name"
    package static let clock = "clock"
    package static let nextSequence = "next_sequence"
    /// Present while a transaction is enqueued in part: the clock of the last encoded change, and the number of parts.
    package static let partialReading = "partial_reading"
    package static let partialParts = "partial_parts"
    /// Present while pending changes may continue after such a transaction.
    package static let unsettled = "unsettled"
    /// The last sequence of this node that the broker has acknowledged, with all before it.
    package static let acknowledged = "acknowledged"
    /// The sequence up to which all of this node's transactions were read back from the topic.
    package static let confirmed = "confirmed"
    /// The partitions in which they were, as numbers separated by commas.
    package static let ownPartitions = "own_partition"
    /// The topic that offsets and ``confirmed`` belong to, and its number of partitions: `name/3`.
    package static let topicShape = "topic_shape"
    /// Bounds of how far this node's clock was ahead of the broker's when that was last measured, in milliseconds.
    package static let clockOffsetLow = "clock_offset_low"
    package static let clockOffsetHigh = "clock_offset_high"
    /// Present while a partition is reread from its beginning, to see which of this node's transactions it still has.
    package static let rescan = "rescan"
    /// 1 while that count can continue after a restart of the process: of this node's transactions, those up to
    /// ``confirmed`` were read again so far, and no later ones.
    package static let rescanResumes = "rescan_resumes"
    /// The schema version for which everything that waits for a constraint was retried.
    package static let retriedSchema = "retried_schema"
    /// The place of the store when an agent last ran on it.
    package static let place = "place"
    /// The offsets that partitions skipped because the topic had dropped them and no snapshot had them; see
    /// ``WantedOffsets``.
    package static let snapshotWanted = "snapshot_wanted"
    /// When such offsets were first recorded, in milliseconds since 1970. Absent while there are none.
    package static let snapshotWantedSince = "snapshot_wanted_since"
    /// The hybrid logical clock up to which tombstones were garbage-collected here: this node's watermark.
    package static let collected = "collected"
    /// The highest such watermark of any node that this one has heard of.
    package static let knownCollected = "known_collected"
    /// What is published and taken, as JSON. Absent: everything.
    package static let filters = "filters"
    /// The previous filters, while the consequences of a change of filters are still being applied.
    package static let formerFilters = "former_filters"
    /// Present once a change to an ignored table concerned rows that other nodes have: this node lacks what they need
    /// of those.
    package static let unpublishedOfKnown = "withheld_of_known"
    /// The one of its two keys under which this node published its newest snapshot, and how many messages are under
    /// each: `1:20,18`.
    package static let snapshotSlots = "snapshot_slots"
    /// When reports on what other nodes have of this one's transactions were last requested, in milliseconds since
    /// 1970: see ``/MartletEngine/Delivery``.
    package static let answerWanted = "answer_wanted"
    /// The key of how far another node, by its number, has all of this node's transactions, by its last report.
    package static func delivered(to node: Int64) -> String { "\(delivered)\(node)" }
    package static let delivered = "delivered/"
}
