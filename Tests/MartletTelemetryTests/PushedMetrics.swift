import Foundation
import MartletHTTP
import Testing

/// The body of a request to a collector, read as a collector reads it.
struct PushedMetrics {
    var resource: [String: String]
    /// The lines that Prometheus would get, sorted.
    var lines: [String] = []
    /// The values of `startTimeUnixNano` and `timeUnixNano`.
    var starts: Set<UInt64> = []
    var times: Set<UInt64> = []

    init(_ body: String) throws {
        let top = try Self.object(JSONDecoder().decode(AnyJSON.self, from: Data(body.utf8)).value)
        let metrics = try #require(Self.objects(top["resourceMetrics"]).first)
        resource = try Self.attributes(Self.object(metrics["resource"])["attributes"])
        let scope = try #require(Self.objects(metrics["scopeMetrics"]).first)
        let library = try Self.object(scope["scope"])
        #expect(library["name"] as? String == "martlet")
        for metric in try Self.objects(scope["metrics"]) { try add(metric) }
        lines.sort()
    }

    /// The lines of the text format, without comments, sorted.
    static func lines(_ families: [MetricFamily]) -> [String] {
        PrometheusText.render(families).split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init).sorted()
    }

    private mutating func add(_ metric: [String: Any]) throws {
        let name = try #require(metric["name"] as? String)
        #expect((metric["description"] as? String)?.isEmpty == false)
        if let sum = metric["sum"] {
            let sum = try Self.object(sum)
            #expect(sum["isMonotonic"] as? Bool == true && sum["aggregationTemporality"] as? Int == 2)
            for point in try Self.objects(sum["dataPoints"]) {
                starts.insert(try Self.integer(point["startTimeUnixNano"]))
                try addNumber(name, point)
            }
        } else if let gauge = metric["gauge"] {
            for point in try Self.objects(Self.object(gauge)["dataPoints"]) {
                #expect(point["startTimeUnixNano"] == nil)
                try addNumber(name, point)
            }
        } else {
            let histogram = try Self.object(metric["histogram"])
            #expect(histogram["aggregationTemporality"] as? Int == 2)
            for point in try Self.objects(histogram["dataPoints"]) { try addHistogram(name, point) }
        }
    }

    private mutating func addNumber(_ name: String, _ point: [String: Any]) throws {
        times.insert(try Self.integer(point["timeUnixNano"]))
        add(name, try Self.attributes(point["attributes"]), try Self.double(point["asDouble"]))
    }

    private mutating func addHistogram(_ name: String, _ point: [String: Any]) throws {
        starts.insert(try Self.integer(point["startTimeUnixNano"]))
        times.insert(try Self.integer(point["timeUnixNano"]))
        let labels = try Self.attributes(point["attributes"])
        let bounds = try Self.list(point["explicitBounds"]).map { try Self.double($0) }
        let counts = try Self.list(point["bucketCounts"]).map { try Self.integer($0) }
        #expect(counts.count == bounds.count + 1)
        var total: UInt64 = 0
        for (bound, count) in zip(bounds + [.infinity], counts) {
            total += count
            add("\(name)_bucket", labels.merging(["le": PrometheusText.number(bound)]) { $1 }, Double(total))
        }
        #expect(try Self.integer(point["count"]) == total)
        add("\(name)_count", labels, Double(total))
        add("\(name)_sum", labels, try Self.double(point["sum"]))
    }

    /// Labels are in the order of their names, with `le` last.
    private mutating func add(_ name: String, _ labels: [String: String], _ value: Double) {
        let sorted = labels.sorted { ($0.key == "le" ? 1 : 0, $0.key) < ($1.key == "le" ? 1 : 0, $1.key) }
        let text = sorted.map { "\($0.key)=\"\($0.value)\"" }.joined(separator: ",")
        lines.append(name + (text.isEmpty ? "" : "{\(text)}") + " \(PrometheusText.number(value))")
    }

    // MARK: JSON

    private static func object(_ value: Any?) throws -> [String: Any] { try #require(value as? [String: Any]) }
    private static func objects(_ value: Any?) throws -> [[String: Any]] { try #require(value as? [[String: Any]]) }

    private static func list(_ value: Any?) throws -> [Any] { try #require(value as? [Any]) }

    private static func attributes(_ value: Any?) throws -> [String: String] {
        var attributes: [String: String] = [:]
        for attribute in try objects(value) {
            let key = try #require(attribute["key"] as? String)
            let value = try object(attribute["value"])
            attributes[key] = try #require(value["stringValue"] as? String)
        }
        return attributes
    }

    /// A 64-bit integer, which is a string in this encoding.
    private static func integer(_ value: Any?) throws -> UInt64 {
        let text = try #require(value as? String)
        return try #require(UInt64(text))
    }

    private static func double(_ value: Any?) throws -> Double {
        if let text = value as? String {
            let numbers: [String: Double] = ["NaN": .nan, "Infinity": .infinity, "-Infinity": -.infinity]
            return try #require(numbers[text])
        }
        return try #require(value as? Double ?? (value as? Int).map(Double.init))
    }
}

/// Reads numbers exactly; on Linux, JSONSerialization doesn't.
private struct AnyJSON: Decodable {
    let value: Any

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let members = try? container.decode([String: AnyJSON].self) {
            value = members.mapValues(\.value)
        } else if let elements = try? container.decode([AnyJSON].self) {
            value = elements.map(\.value)
        } else if let text = try? container.decode(String.self) {
            value = text
        } else if let flag = try? container.decode(Bool.self) {
            value = flag
        } else if let whole = try? container.decode(Int.self) {
            value = whole
        } else {
            value = try container.decode(Double.self)
        }
    }
}
