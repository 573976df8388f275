/// The labels of the metrics that ``Publisher`` and ``Consumer`` record.
public enum SyncMetricNames {
    /// Counter: transactions that the broker acknowledged. A republished transaction counts again.
    public static let published = "martlet_transactions_published_total"
    /// Counter: transactions of other nodes that were applied, at least in part.
    public static let applied = "martlet_transactions_applied_total"
    /// Counter: transactions that arrived again, and were dropped.
    public static let duplicates = "martlet_transactions_duplicate_total"
    /// Counter: transactions that are pending because their clock is too far ahead.
    public static let deferred = "martlet_transactions_deferred_total"
    /// Counter: messages that could not be understood.
    public static let quarantined = "martlet_messages_quarantined_total"
    /// Counter: retries of publishing after a failure.
    public static let publishRetries = "martlet_publish_retries_total"
    /// Counter: retries of reading after a failure.
    public static let readRetries = "martlet_read_retries_total"
    /// Counter: partitions that were read again from the beginning, because the topic was not the expected one.
    public static let rereads = "martlet_partition_rereads_total"
    /// Timer: from the commit at the origin, by its clock, to the commit here, by this node's clock.
    public static let commitToVisible = "martlet_commit_to_visible_seconds"
}
