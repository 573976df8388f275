/// All samples of one metric in one answer of `/metrics`.
package struct MetricFamily: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case counter
        case gauge
        case histogram
    }

    package struct Label: Sendable, Hashable {
        package var name: String
        package var value: String

        init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package struct Sample: Sendable, Equatable {
        /// The suffix after the family's name: `_bucket`, `_sum` or `_count` of a histogram.
        package var suffix = ""
        package var labels: [Label] = []
        package var value: Double
    }

    package var name: String
    package var kind: Kind
    package var help: String
    package var samples: [Sample]
}
