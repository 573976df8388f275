/// Formats the line that shows the progress of long work. Pure.
package enum ProgressText {
    private static let barWidth = 30
    private static let leastBarWidth = 10

    /// Returns a bar, a percentage, the numbers, and the details.
    ///
    /// - Parameters:
    ///   - total: 0 if it is unknown; there is no bar then.
    ///   - columns: the width of the line; nil if it is unlimited. If space is short, the bar shrinks before the text
    ///     is cut at its end.
    package static func line(
        _ done: Int, of total: Int, _ what: String, details: [String] = [], columns: Int? = nil
    ) -> String {
        let numbers = ([total > 0 ? "\(done) of \(total) \(what)" : "\(done) \(what)"] + details.filter { !$0.isEmpty })
            .joined(separator: ", ")
        guard total > 0 else { return cut(numbers, columns) }
        let share = min(1, max(0, Double(done) / Double(total)))
        let text = "\(Int(share * 100)) %  \(numbers)"
        // For the brackets, and the space after them.
        let free = columns.map { $0 - text.count - 3 } ?? barWidth
        guard free >= leastBarWidth else { return cut(text, columns) }
        let width = min(barWidth, free)
        let filled = Int(share * Double(width))
        return "[\(String(repeating: "#", count: filled))\(String(repeating: ".", count: width - filled))] \(text)"
    }

    private static func cut(_ text: String, _ columns: Int?) -> String {
        columns.map { String(text.prefix(max(0, $0))) } ?? text
    }

    /// Formats a rate per second.
    package static func rate(_ perSecond: Double) -> String {
        perSecond >= 10 ? "\(Int(perSecond.rounded()))/s" : "\((perSecond * 10).rounded() / 10)/s"
    }

    /// Estimates the remaining time, as precisely as it can be known. Empty if it can't.
    package static func estimate(remaining: Int, perSecond: Double) -> String {
        guard remaining > 0, perSecond > 0 else { return "" }
        let seconds = Double(remaining) / perSecond
        // A hundred days: there is no real progress.
        guard seconds < 8_640_000 else { return "" }
        switch Int(seconds.rounded(.up)) {
        case let seconds where seconds < 60: return "about \(seconds) s left"
        case let seconds where seconds < 3600: return "about \((seconds + 30) / 60) min left"
        case let seconds: return "about \(seconds / 3600) h \(seconds % 3600 / 60) min left"
        }
    }
}
