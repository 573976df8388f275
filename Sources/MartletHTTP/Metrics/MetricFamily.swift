/// All samples of one metric, as one answer of `/metrics` has them.
struct MetricFamily: Sendable, Equatable {
    enum Kind: String, Sendable {
        case counter
        case gauge
        case histogram
    }

    struct Label: Sendable, Hashable {
        var name: String
        var value: String

        init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    struct Sample: Sendable, Equatable {
        /// What follows the family's name: `_bucket`, `_sum`, `_count` of a histogram.
        var suffix = ""
        var labels: [Label] = []
        var value: Double
    }

    var name: String
    var kind: Kind
    var help: String
    var samples: [Sample]
}
