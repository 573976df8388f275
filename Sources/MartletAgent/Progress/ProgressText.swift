/// The line that says how far something is. Pure.
package enum ProgressText {
    private static let barWidth = 30
    private static let leastBarWidth = 10

    /// A bar, a percentage, the numbers, and what else there is to say.
    ///
    /// - Parameters:
    ///   - total: 0 where nobody knows it; there is no bar then.
    ///   - columns: what the line may take; nil where it may take any number. The bar gives way before the text does,
    ///     and the text is
    ///     cut at its end.
    package static func line(
        _ done: Int, of total: Int, _ what: String, details: [String] = [], columns: Int? = nil
    ) -> String {
        let numbers = ([total > 0 ? "\(done) of \(total) \(what)" : "\(done) \(what)"] + details.filter { !$0.isEmpty })
            .joined(separator: ", ")
        guard total > 0 else { return cut(numbers, columns) }
        let share = min(1, max(0, Double(done) / Double(total)))
        let text = "\(Int(share * 100)) %  \(numbers)"
        // Brackets, and the space after them.
        let free = columns.map { $0 - text.count - 3 } ?? barWidth
        guard free >= leastBarWidth else { return cut(text, columns) }
        let width = min(barWidth, free)
        let filled = Int(share * Double(width))
        return "[\(String(repeating: "#", count: filled))\(String(repeating: ".", count: width - filled))] \(text)"
    }

    private static func cut(_ text: String, _ columns: Int?) -> String {
        columns.map { String(text.prefix(max(0, $0))) } ?? text
    }

    /// How much goes on in a second.
    package static func rate(_ perSecond: Double) -> String {
        perSecond >= 10 ? "\(Int(perSecond.rounded()))/s" : "\((perSecond * 10).rounded() / 10)/s"
    }

    /// How long it will take, as exactly as anybody can know it. Empty where nobody can.
    package static func estimate(remaining: Int, perSecond: Double) -> String {
        guard remaining > 0, perSecond > 0 else { return "" }
        let seconds = Double(remaining) / perSecond
        // A hundred days: nothing moves.
        guard seconds < 8_640_000 else { return "" }
        switch Int(seconds.rounded(.up)) {
        case let seconds where seconds < 60: return "about \(seconds) s left"
        case let seconds where seconds < 3600: return "about \((seconds + 30) / 60) min left"
        case let seconds: return "about \(seconds / 3600) h \(seconds % 3600 / 60) min left"
        }
    }
}
