import CBaseline
import Foundation
import MartletStore

/// One line of a table.
struct Line: Codable {
    var benchmark: String
    var what: String
    var unit: String
    var baseline: Double?
    var martlet: Double?
    /// Martlet's figure divided by the baseline's: the median over repetitions.
    var ratio: Double?
    var lowestRatio: Double?
    var highestRatio: Double?
    var goal: String?
    var isMet: Bool?
}

/// Prints tables as results arrive, or JSON at the end. Confined to the main thread.
final class Report {
    private struct Document: Codable {
        var machine: [String: String]
        var lines: [Line]
        var notes: [String]
    }

    private let isJSON: Bool
    private var document = Document(machine: [:], lines: [], notes: [])
    private var benchmark = ""

    init(isJSON: Bool) { self.isJSON = isJSON }

    func begin(_ run: Run) {
        let store = run.settings.store
        let head = [
            ("machine", Machine.description), ("system", Machine.system), ("load at start", Machine.load),
            ("SQLite", String(cString: baseline_sqlite_version())),
            ("librdkafka", String(cString: baseline_kafka_version())),
            (
                "settings",
                "\(run.settings.rawValue): WAL, synchronous NORMAL, cache \(store.cacheKiB) KiB, secure_delete "
                    + "\(store.secureDelete ? "on" : "off"), checkpoint at \(store.walAutocheckpointPages) pages"
            ),
            ("repetitions", "\(run.repetitions), interleaved\(run.isQuick ? ", quick" : "")"),
            ("time", run.clock == CLOCK_MONOTONIC ? "elapsed" : "of the processor"),
        ]
        document.machine = Dictionary(uniqueKeysWithValues: head)
        for (key, value) in head { say("\(pad(key, 14)) \(value)") }
    }

    func begin(_ name: String) {
        benchmark = name
        say("\n\(name)")
        say("  \(pad("", 52)) \(padLeft("baseline", 13)) \(padLeft("Martlet", 13)) \(padLeft("ratio", 20))  goal")
    }

    /// Reports a rate and its ratio to a baseline rate of the same repetitions.
    func compare(_ what: String, _ unit: String, baseline: [Double], martlet: [Double], goal: Double? = nil) {
        let ratios = zip(baseline, martlet).map { $1 / $0 }
        var line = Line(
            benchmark: benchmark, what: what, unit: unit, baseline: median(baseline), martlet: median(martlet),
            ratio: median(ratios), lowestRatio: ratios.min(), highestRatio: ratios.max())
        if let goal {
            line.goal = ">= \(String(format: "%.2f", goal))"
            line.isMet = median(ratios) >= goal
        }
        add(line)
    }

    /// Reports two figures. If `allowed` is given, Martlet's must not exceed the baseline by more than that.
    func compare(_ what: String, _ unit: String, baseline: Double, martlet: Double, allowed: Double? = nil) {
        add(
            Line(
                benchmark: benchmark, what: what, unit: unit, baseline: baseline, martlet: martlet,
                goal: allowed.map { "<= baseline + \($0) \(unit)" }, isMet: allowed.map { martlet <= baseline + $0 }))
    }

    /// Reports a figure without a baseline.
    func state(_ what: String, _ unit: String, _ value: Double, below limit: Double? = nil) {
        add(
            Line(
                benchmark: benchmark, what: what, unit: unit, martlet: value, goal: limit.map { "< \($0) \(unit)" },
                isMet: limit.map { value < $0 }))
    }

    func note(_ text: String) {
        document.notes.append("\(benchmark): \(text)")
        say("  \(text)")
    }

    func end() throws {
        guard isJSON else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        print(String(decoding: try encoder.encode(document), as: UTF8.self))
    }

    private func add(_ line: Line) {
        document.lines.append(line)
        var ratio = ""
        if let middle = line.ratio, let low = line.lowestRatio, let high = line.highestRatio {
            ratio = String(format: "%.2f (%.2f to %.2f)", middle, low, high)
        }
        let goal = line.goal.map { "\($0) \(line.isMet == true ? "met" : "MISSED")" } ?? ""
        say(
            """
              \(pad("\(line.what), \(line.unit)", 52)) \(number(line.baseline)) \(number(line.martlet)) \
            \(padLeft(ratio, 20))  \(goal)
            """)
    }

    private func say(_ text: String) {
        guard !isJSON else { return }
        print(text)
        // Flushes, so that output is visible at once, also through a pipe.
        try? FileHandle.standardOutput.synchronize()
        fflush(nil)
    }

    private func number(_ value: Double?) -> String {
        guard let value else { return padLeft("", 13) }
        return padLeft(String(format: value >= 100 ? "%.0f" : "%.3f", value), 13)
    }

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
    private func padLeft(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
