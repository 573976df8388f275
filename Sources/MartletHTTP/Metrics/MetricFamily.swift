/// All samples of one metric in one answer of `/metrics`.
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
        /// The suffix after the family's name: `_bucket`, `_sum` or `_count` of a histogram.
        var suffix = ""
        var labels: [Label] = []
        var value: Double
    }

    var name: String
    var kind: Kind
    var help: String
    var samples: [Sample]
}
