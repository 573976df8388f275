package import Foundation
package import MartletStore

/// Formats sizes, and what a store's history and file take. Pure.
package enum SizeText {
    /// Returns bytes in the largest unit of which there is one at least.
    package static func bytes(_ bytes: Int64) -> String {
        var value = Double(bytes)
        var unit = "bytes"
        for larger in ["KiB", "MiB", "GiB", "TiB"] where value >= 1024 {
            value /= 1024
            unit = larger
        }
        return unit == "bytes" ? "\(bytes) bytes" : String(format: "%.1f \(unit)", value)
    }

    /// Returns a duration in the largest unit of which it is a multiple.
    package static func duration(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        for (unit, length) in [("day", 86_400 as Int64), ("hour", 3600), ("minute", 60)]
        where seconds >= length && seconds % length == 0 {
            return seconds == length ? "1 \(unit)" : "\(seconds / length) \(unit)s"
        }
        return seconds == 1 ? "1 second" : "\(seconds) seconds"
    }

    /// Describes what the agent keeps.
    package static func bounds(_ bounds: HistoryBounds?) -> String {
        guard let bounds else { return "no agent has deleted any yet" }
        let parts = [
            bounds.age.map { "for \(duration($0))" }, bounds.sizeBytes.map { "up to \(bytes($0))" },
        ].compactMap(\.self)
        return parts.isEmpty ? "kept without bounds" : "kept " + parts.joined(separator: ", ")
    }

    /// Describes what a file takes.
    package static func space(_ file: FileSpace) -> String {
        "\(bytes(file.bytes)), \(bytes(file.freeBytes)) of it free"
            + (file.isShrinkable ? "; the agent gives back what stays free" : "")
    }

    /// Returns the lines of `martlet status`.
    ///
    /// - Parameters:
    ///   - history: Nil if it was not measured.
    ///   - time: Formats a time.
    package static func lines(_ history: HistoryReport?, _ file: FileSpace, time: (Date) -> String) -> [String] {
        (history.map { lines($0, time) } ?? []) + ["file        \(space(file))"]
    }

    private static func lines(_ history: HistoryReport, _ time: (Date) -> String) -> [String] {
        let count = history.size.transactions
        let since = history.oldest.map { " since \(time($0))" } ?? ""
        var lines = [
            """
            history     \(bytes(history.size.bytes)), \(count) \(count == 1 ? "transaction" : "transactions")\(since); \
            \(bounds(history.bounds))
            """
        ]
        if let held = history.held {
            let cursor = EscapedText.escaped(held.cursor)
            lines.append("held        \(bytes(held.bytes)) of history beyond that, by the cursor \(cursor)")
        }
        return lines
    }
}
