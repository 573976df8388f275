import Foundation
import MartletHTTP
import Metrics
import Testing

@Suite struct PrometheusTextTests {
    @Test func theTextContainsRecordedMetrics() {
        let registry = MetricsRegistry()
        // Libraries create the counter again each time: it stays one series.
        Counter(label: "a.requests-total", dimensions: [("path", "/x")], factory: registry).increment(by: 2)
        Counter(label: "a.requests-total", dimensions: [("path", "/x")], factory: registry).increment()
        Counter(label: "a.requests-total", dimensions: [("path", "/y")], factory: registry).increment()
        Gauge(label: "temperature", factory: registry).record(-1.5)
        Meter(label: "level", factory: registry).set(7)
        FloatingPointCounter(label: "litres_total", factory: registry).increment(by: 0.5)
        #expect(
            PrometheusText.render(registry.collect()) == """
                # HELP a_requests_total Recorded by a library as a_requests_total.
                # TYPE a_requests_total counter
                a_requests_total{path="/x"} 3
                a_requests_total{path="/y"} 1
                # HELP level Recorded by a library as level.
                # TYPE level gauge
                level 7
                # HELP litres_total Recorded by a library as litres_total.
                # TYPE litres_total counter
                litres_total 0.5
                # HELP temperature Recorded by a library as temperature.
                # TYPE temperature gauge
                temperature -1.5

                """)
    }

    @Test func aHistogramHasCumulativeBuckets() throws {
        let registry = MetricsRegistry()
        let timer = Timer(label: "wait_seconds", factory: registry)
        for milliseconds in [0, 1, 2, 40, 999, 7_200_000] { timer.recordMilliseconds(milliseconds) }
        let samples = try #require(registry.collect().first).samples
        func value(_ suffix: String, le: String? = nil) -> Double? {
            samples.first { $0.suffix == suffix && $0.labels.first?.value == le }?.value
        }
        #expect(value("_bucket", le: "0.001") == 2)
        #expect(value("_bucket", le: "0.0025") == 3)
        #expect(value("_bucket", le: "0.05") == 4)
        #expect(value("_bucket", le: "1") == 5)
        #expect(value("_bucket", le: "3600") == 5)
        #expect(value("_bucket", le: "+Inf") == 6)
        #expect(value("_count") == 6)
        #expect(abs((value("_sum") ?? 0) - 7201.042) < 1e-6)
    }

    @Test func aNameHasOneKind() {
        let registry = MetricsRegistry()
        Counter(label: "x", factory: registry).increment(by: 5)
        Gauge(label: "x", factory: registry).record(1)
        #expect(registry.collect().map(\.kind) == [.counter])
        #expect(registry.collect().first?.samples.map(\.value) == [5])
    }

    @Test(
        arguments: [
            (0, "0"), (1e20, "1e+20"), (-3, "-3"), (0.25, "0.25"), (Double.nan, "NaN"), (.infinity, "+Inf"),
            (-.infinity, "-Inf"), (1e15, "1000000000000000"), (123_456_789_012, "123456789012"),
        ] as [(Double, String)])
    func numbersAreWrittenAsPrometheusReadsThem(_ number: Double, _ text: String) {
        #expect(PrometheusText.number(number) == text)
    }

    /// Users may choose any name for nodes and topics.
    static let hostile = [
        "a\"} 1\nevil_total{x=\"", "back\\slash", "new\nline", "carriage\r\nreturn", "\u{0}nul", "é 🐦 \u{202e}x", "",
        "{}=,",
    ]

    @Test(.enabled(if: Promtool.isThere, "promtool is not installed: scripts/install-dependencies.sh --test"))
    func promtoolAcceptsHostileLabels() throws {
        let registry = MetricsRegistry()
        for (number, text) in Self.hostile.enumerated() {
            Counter(label: "hostile_total", dimensions: [("value", text)], factory: registry).increment(by: number)
        }
        try Promtool.check(PrometheusText.render(registry.collect()))
    }

    @Test func hostileLabelsStayInsideTheirQuotes() throws {
        let registry = MetricsRegistry()
        for text in Self.hostile {
            Gauge(label: "hostile", dimensions: [("value", text)], factory: registry).record(1)
        }
        let lines = PrometheusText.render(registry.collect()).split(separator: "\n")
        #expect(lines.count == 2 + Self.hostile.count)
        let read = try Exposition(PrometheusText.render(registry.collect()))
        #expect(Set(read.samples.map { $0.labels["value"] }) == Set(Self.hostile))
    }
}
