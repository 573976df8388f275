/// All samples of one metric at one moment.
package struct MetricFamily: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case counter
        case gauge
        case histogram
    }

    package struct Label: Sendable, Hashable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package struct Sample: Sendable, Equatable {
        /// The suffix after the family's name: `_bucket`, `_sum` or `_count` of a histogram.
        package var suffix = ""
        package var labels: [Label] = []
        package var value: Double

        package init(suffix: String = "", labels: [Label] = [], value: Double) {
            self.suffix = suffix
            self.labels = labels
            self.value = value
        }
    }

    package var name: String
    package var kind: Kind
    package var help: String
    package var samples: [Sample]

    package init(name: String, kind: Kind, help: String, samples: [Sample]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.samples = samples
    }
}
