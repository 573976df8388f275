/// The text format 0.0.4 of Prometheus, https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
///
/// Chosen before OpenMetrics because every scraper reads it, and Debian's promtool checks it.
package enum PrometheusText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    package static func render(_ families: [MetricFamily]) -> String {
        var text = ""
        for family in families where !family.samples.isEmpty {
            text += "# HELP \(family.name) \(escaped(family.help))\n# TYPE \(family.name) \(family.kind.rawValue)\n"
            for sample in family.samples {
                let labels = sample.labels.map { "\($0.name)=\"\(escapedValue($0.value))\"" }.joined(separator: ",")
                text +=
                    family.name + sample.suffix + (labels.isEmpty ? "" : "{\(labels)}") + " \(number(sample.value))\n"
            }
        }
        return text
    }

    package static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        // The whole numbers that a double represents exactly.
        return value == value.rounded() && abs(value) < 0x1p53 ? "\(Int64(value))" : "\(value)"
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        // By scalar: as a character, a carriage return and a line feed are one that equals neither.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private static func escapedValue(_ text: String) -> String {
        var value = ""
        for scalar in escaped(text).unicodeScalars {
            if scalar == "\"" { value += "\\" }
            value.unicodeScalars.append(scalar)
        }
        return value
    }

    /// Returns a name that the format allows: letters, digits and underscores, and no digit first.
    static func name(_ text: String) -> String {
        let name = String(text.map { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_" ? $0 : "_" })
        return name.first.map(\.isNumber) ?? true ? "_" + name : name
    }
}
