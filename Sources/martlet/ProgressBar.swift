import Foundation
import MartletAgent

/// The progress of long work, on standard error: a bar on a terminal, otherwise a line every two seconds.
struct ProgressBar {
    private var shown: ContinuousClock.Instant?
    private var isDrawn = false

    /// - Parameter total: 0 if it is unknown.
    mutating func show(_ done: Int, of total: Int, _ what: String, detail: String = "") {
        let now = ContinuousClock.now
        let pause = Terminal.isErrorOutput ? Duration.milliseconds(100) : .seconds(2)
        guard let last = shown else { return shown = now }
        guard now - last >= pause else { return }
        shown = now
        guard Terminal.isErrorOutput else {
            return write("\(done) of \(total) \(what)\(detail.isEmpty ? "" : ", \(detail)")\n")
        }
        isDrawn = true
        let line = ProgressText.line(done, of: total, what, details: [detail], columns: Terminal.errorColumns)
        write("\r\(line)\u{1b}[K")
    }

    /// Removes the bar.
    mutating func finish() {
        if isDrawn { write("\r\u{1b}[K") }
        isDrawn = false
    }

    private func write(_ text: String) { ErrorOutput.write(text) }
}
