/// The names of the metrics that are recorded while metrics are pushed.
package enum TelemetryMetricNames {
    /// Counter: requests that brought no success. A retry counts again.
    package static let failures = "martlet_otlp_push_failures_total"
    /// Counter: data points that the collector took no part of, although it accepted the request.
    package static let rejected = "martlet_otlp_rejected_points_total"
}
