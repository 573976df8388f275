/// The labels of the metrics that an ``Exporter`` records.
public enum ExportMetricNames {
    /// Counter: records of rows that the broker acknowledged, without the null records after deletes.
    public static let records = "martlet_export_records_total"
    /// Counter: retries of exporting after an error.
    public static let retries = "martlet_export_retries_total"
    /// Gauge: changes in the history that are still to be exported, about. 0 on nodes that don't export.
    public static let lag = "martlet_export_lag_changes"
    /// Gauge: 1 while this node is the one that exports, else 0.
    public static let isExporting = "martlet_export_leader"
}
