import Foundation

/// What a person at a terminal sees, and a program that reads the same does not: colours, and lines that are written over.
enum Terminal {
    static let isOutput = isatty(STDOUT_FILENO) == 1
    static let isErrorOutput = isatty(STDERR_FILENO) == 1
    private static let isDumb = ProcessInfo.processInfo.environment["TERM"] == "dumb"
    /// https://no-color.org
    private static let hasColour =
        isOutput && !isDumb && ProcessInfo.processInfo.environment["NO_COLOR", default: ""].isEmpty

    enum Colour: Int {
        case bold = 1
        case red = 31
        case green = 32
        case yellow = 33
    }

    /// The text in a colour, where standard output is a terminal that has any.
    static func coloured(_ text: String, _ colour: Colour?) -> String {
        guard hasColour, let colour else { return text }
        return "\u{1b}[\(colour.rawValue)m\(text)\u{1b}[0m"
    }

    /// Columns and rows, where standard output is a terminal that says so.
    static var size: (columns: Int, rows: Int)? {
        var window = winsize()
        guard isOutput, ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0
        else {
            return nil
        }
        return (Int(window.ws_col), Int(window.ws_row))
    }

    /// The text with lines that end between words, where standard output is a terminal; else as it is.
    ///
    /// - Parameters:
    ///   - used: columns of the first line that something stands in already.
    ///   - indent: columns that are left free before the other lines.
    static func wrapped(_ text: String, after used: Int = 0, indent: Int) -> String {
        guard let columns = size?.columns, columns > indent + 20 else { return text }
        var (result, width) = ("", used)
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            if width > (result.isEmpty ? used : indent), width + 1 + word.count > columns {
                result += "\n" + String(repeating: " ", count: indent)
                width = indent
            } else if !result.isEmpty {
                result += " "
                width += 1
            }
            result += word
            width += word.count
        }
        return result
    }

    /// Prints the lines where the same lines stood before. After them, where standard output is no terminal.
    ///
    /// What has no place on the screen is left out, so that nothing scrolls: the last line says how much of it there is.
    static func redraw(_ lines: [String]) {
        if isOutput && !isDumb {
            var shown = lines[...]
            if let rows = size?.rows, rows > 1, lines.count >= rows {
                shown = lines.prefix(rows - 2) + ["... and \(lines.count - rows + 2) more lines"]
            }
            let text = shown.map { $0 + "\u{1b}[K\n" }.joined()
            // Long lines are cut, not wrapped.
            print("\u{1b}[?7l\u{1b}[H\(text)\u{1b}[J\u{1b}[?7h", terminator: "")
        } else {
            print(lines.joined(separator: "\n") + "\n")
        }
        fflush(nil)
    }

    /// Empties the screen for what ``redraw(_:)`` draws.
    static func clear() {
        if isOutput && !isDumb { print("\u{1b}[2J", terminator: "") }
    }
}

/// How far something is, on standard error: a bar on a terminal, else a line every two seconds.
struct ProgressBar {
    private static let width = 30
    private var shown: ContinuousClock.Instant?
    private var isDrawn = false

    /// - Parameter total: 0 where nobody knows it.
    mutating func show(_ done: Int, of total: Int, _ what: String, detail: String = "") {
        let now = ContinuousClock.now
        let pause = Terminal.isErrorOutput ? Duration.milliseconds(100) : .seconds(2)
        guard let last = shown else { return shown = now }
        guard now - last >= pause else { return }
        shown = now
        let end = detail.isEmpty ? "" : ", \(detail)"
        guard Terminal.isErrorOutput else { return write("\(done) of \(total) \(what)\(end)\n") }
        let share = total > 0 ? min(1, Double(done) / Double(total)) : 0
        let filled = Int(share * Double(Self.width))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
        isDrawn = true
        write("\r[\(bar)] \(Int(share * 100)) %  \(done) of \(total) \(what)\(end)\u{1b}[K")
    }

    /// Takes the bar away.
    mutating func finish() {
        if isDrawn { write("\r\u{1b}[K") }
        isDrawn = false
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
