import Foundation
import MartletHTTP
import MartletTelemetry
import Metrics
import Testing

@Suite struct ExportRequestTests {
    private func pushed(_ families: [MetricFamily]) throws -> PushedMetrics {
        let request = ExportRequest(
            families, resource: ["service.name": "martlet", "host.name": "box"], version: "1", start: 5,
            time: 1_800_000_000_000_000_001)
        return try PushedMetrics(String(decoding: request.json, as: UTF8.self))
    }

    @Test func aRequestHasWhatPrometheusGets() throws {
        let registry = MetricsRegistry()
        Counter(label: "sent_total", dimensions: [("topic", "a")], factory: registry).increment(by: 3)
        Counter(label: "sent_total", dimensions: [("topic", "b")], factory: registry).increment(by: 1 << 40)
        Meter(label: "level", factory: registry).set(-0.5)
        for client in ["x", "y"] {
            let timer = Metrics.Timer(label: "seconds", dimensions: [("client", client)], factory: registry)
            for milliseconds in [0, 1, 40, 2_000_000_000] as [Int64] { timer.recordMilliseconds(milliseconds) }
        }
        let families = registry.collect()
        #expect(families.count == 3)
        let read = try pushed(families)
        #expect(read.lines == PushedMetrics.lines(families))
        #expect(read.starts == [5] && read.times == [1_800_000_000_000_000_001])
        #expect(read.resource == ["service.name": "martlet", "host.name": "box"])
    }

    @Test func numbersThatJSONLacksAreText() throws {
        let families = [Double.infinity, -.infinity, .nan].enumerated().map { number, value in
            MetricFamily(name: "n\(number)", kind: .gauge, help: "A number.", samples: [.init(value: value)])
        }
        #expect(try pushed(families).lines == ["n0 +Inf", "n1 -Inf", "n2 NaN"])
    }

    @Test func labelsAreSentAsTheyAre() throws {
        let label = "a\"} 1\nevil 2 \u{1F426}"
        let family = MetricFamily(
            name: "n", kind: .gauge, help: "A number.",
            samples: [.init(labels: [.init("name", label)], value: 1)])
        #expect(try pushed([family]).lines == ["n{name=\"\(label)\"} 1"])
    }

    @Test func familiesWithoutSamplesAreLeftOut() throws {
        #expect(try pushed([MetricFamily(name: "n", kind: .counter, help: "None.", samples: [])]).lines.isEmpty)
        #expect(String(decoding: try ExportRequest.empty.json, as: UTF8.self) == #"{"resourceMetrics":[]}"#)
    }
}
