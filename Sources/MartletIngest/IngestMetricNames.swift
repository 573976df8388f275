/// The labels of the metrics that an ``Ingester`` records.
public enum IngestMetricNames {
    /// Counter: records that were merged, those that changed nothing included.
    public static let records = "martlet_ingest_records_total"
    /// Counter: retries of ingesting after an error, of one record or of a topic.
    public static let retries = "martlet_ingest_retries_total"
    /// Gauge: records that are still to be read, about.
    public static let lag = "martlet_ingest_lag_records"
    /// Gauge: partitions that a record holds up.
    public static let held = "martlet_ingest_held_partitions"
}
