package import Foundation
package import MartletHTTP

/// A request to a collector: OTLP's `ExportMetricsServiceRequest` in its JSON encoding, in which 64-bit integers are
/// strings, and enumerations are numbers (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
package struct ExportRequest: Encodable, Sendable, Equatable {
    package struct ResourceMetrics: Encodable, Sendable, Equatable {
        var resource: Resource
        var scopeMetrics: [ScopeMetrics]
    }

    package struct Resource: Encodable, Sendable, Equatable {
        var attributes: [Attribute]
    }

    package struct ScopeMetrics: Encodable, Sendable, Equatable {
        var scope: Scope
        var metrics: [Metric]
    }

    package struct Scope: Encodable, Sendable, Equatable {
        var name: String
        var version: String
    }

    package struct Attribute: Encodable, Sendable, Equatable {
        struct Text: Encodable, Sendable, Equatable {
            var stringValue: String
        }

        var key: String
        var value: Text

        init(_ key: String, _ value: String) {
            self.key = key
            self.value = Text(stringValue: value)
        }
    }

    /// Has one of the three.
    package struct Metric: Encodable, Sendable, Equatable {
        var name: String
        var description: String
        var sum: Sum?
        var gauge: Gauge?
        var histogram: Histogram?
    }

    struct Sum: Encodable, Sendable, Equatable {
        var aggregationTemporality = ExportRequest.cumulative
        var isMonotonic = true
        var dataPoints: [NumberPoint]
    }

    struct Gauge: Encodable, Sendable, Equatable {
        var dataPoints: [NumberPoint]
    }

    struct Histogram: Encodable, Sendable, Equatable {
        var aggregationTemporality = ExportRequest.cumulative
        var dataPoints: [HistogramPoint]
    }

    struct NumberPoint: Encodable, Sendable, Equatable {
        var attributes: [Attribute]
        /// Absent in gauges.
        var startTimeUnixNano: String?
        var timeUnixNano: String
        var asDouble: Double
    }

    struct HistogramPoint: Encodable, Sendable, Equatable {
        var attributes: [Attribute]
        var startTimeUnixNano: String
        var timeUnixNano: String
        var count: String
        var sum: Double
        /// One more than there are bounds: the last one counts what is larger than all of them.
        var bucketCounts: [String]
        var explicitBounds: [Double]
    }

    /// AGGREGATION_TEMPORALITY_CUMULATIVE: values count from the start time, so a push that is lost loses nothing.
    static let cumulative = 2

    package var resourceMetrics: [ResourceMetrics]

    /// Asks the collector for nothing, and shows whether it answers.
    package static let empty = ExportRequest(resourceMetrics: [])

    private init(resourceMetrics: [ResourceMetrics]) { self.resourceMetrics = resourceMetrics }

    /// - Parameters:
    ///   - families: as `/metrics` has them.
    ///   - resource: attributes that say who sends this.
    ///   - start: since when counters count, in nanoseconds since 1970.
    ///   - time: when the values were read.
    package init(
        _ families: [MetricFamily], resource: [String: String], version: String, start: UInt64, time: UInt64
    ) {
        let attributes = resource.sorted { $0.key < $1.key }.map { Attribute($0.key, $0.value) }
        let metrics = families.filter { !$0.samples.isEmpty }.map { Metric($0, "\(start)", "\(time)") }
        resourceMetrics = [
            ResourceMetrics(
                resource: Resource(attributes: attributes),
                scopeMetrics: [ScopeMetrics(scope: Scope(name: "martlet", version: version), metrics: metrics)])
        ]
    }

    package var json: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            // As Protobuf's JSON has them.
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
            return try encoder.encode(self)
        }
    }
}

extension ExportRequest.Metric {
    fileprivate init(_ family: MetricFamily, _ start: String, _ time: String) {
        name = family.name
        description = family.help
        func points(from start: String?) -> [ExportRequest.NumberPoint] {
            family.samples.map { sample in
                ExportRequest.NumberPoint(
                    attributes: sample.labels.map { ExportRequest.Attribute($0.name, $0.value) },
                    startTimeUnixNano: start, timeUnixNano: time, asDouble: sample.value)
            }
        }
        switch family.kind {
        case .counter: sum = ExportRequest.Sum(dataPoints: points(from: start))
        case .gauge: gauge = ExportRequest.Gauge(dataPoints: points(from: nil))
        case .histogram:
            histogram = ExportRequest.Histogram(
                dataPoints: Self.series(family.samples).map { ExportRequest.HistogramPoint($0, start, time) })
        }
    }

    /// The samples of a histogram, by series, in their order.
    private static func series(_ samples: [MetricFamily.Sample]) -> [[MetricFamily.Sample]] {
        var places: [[MetricFamily.Label]: Int] = [:]
        var series: [[MetricFamily.Sample]] = []
        for sample in samples {
            let labels = sample.labels.filter { $0.name != "le" }
            if let place = places[labels] {
                series[place].append(sample)
            } else {
                places[labels] = series.count
                series.append([sample])
            }
        }
        return series
    }
}

extension ExportRequest.HistogramPoint {
    /// - Parameter samples: of one series: `_bucket` with ascending bounds, each with the count up to it; `_sum`,
    ///   `_count`.
    fileprivate init(_ samples: [MetricFamily.Sample], _ start: String, _ time: String) {
        var bounds: [Double] = []
        var counts: [Int64] = []
        var before: Int64 = 0
        for sample in samples where sample.suffix == "_bucket" {
            let total = Int64(sample.value)
            counts.append(total - before)
            before = total
            // The last one has the bound +Inf, which OTLP leaves out.
            if let bound = sample.labels.first(where: { $0.name == "le" }).flatMap({ Double($0.value) }),
                bound.isFinite
            {
                bounds.append(bound)
            }
        }
        attributes = (samples.first?.labels ?? []).filter { $0.name != "le" }
            .map { ExportRequest.Attribute($0.name, $0.value) }
        startTimeUnixNano = start
        timeUnixNano = time
        count = "\(Int64(samples.first { $0.suffix == "_count" }?.value ?? 0))"
        sum = samples.first { $0.suffix == "_sum" }?.value ?? 0
        bucketCounts = counts.map { "\($0)" }
        explicitBounds = bounds
    }
}
