import Foundation

/// Output for people at a terminal, which programs that read the output don't get: colours, and lines that are
/// overwritten.
enum Terminal {
    static let isOutput = isatty(STDOUT_FILENO) == 1
    static let isErrorOutput = isatty(STDERR_FILENO) == 1
    private static let isDumb = ProcessInfo.processInfo.environment["TERM"] == "dumb"
    /// Whether a line on standard error can be kept up to date. If standard output is no terminal, its lines could
    /// break that one.
    static let showsStatusLine = isOutput && isErrorOutput && !isDumb
    /// https://no-color.org
    private static let hasColour =
        isOutput && !isDumb && ProcessInfo.processInfo.environment["NO_COLOR", default: ""].isEmpty

    enum Colour: Int {
        case bold = 1
        case red = 31
        case green = 32
        case yellow = 33
    }

    /// Returns the text in a colour, if standard output is a terminal with colours.
    static func coloured(_ text: String, _ colour: Colour?) -> String {
        guard hasColour, let colour else { return text }
        return "\u{1b}[\(colour.rawValue)m\(text)\u{1b}[0m"
    }

    /// The number of columns and rows. Nil if standard output is no terminal, or its size is unknown.
    static var size: (columns: Int, rows: Int)? { isOutput ? dimensions(of: STDOUT_FILENO) : nil }

    /// The longest line that is not wrapped. Nil if standard error is no terminal, or its size is unknown.
    static var errorColumns: Int? {
        // After a character in the last column, the cursor's place differs between terminals.
        isErrorOutput ? dimensions(of: STDERR_FILENO).map { $0.columns - 1 } : nil
    }

    private static func dimensions(of descriptor: Int32) -> (columns: Int, rows: Int)? {
        var window = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return nil
        }
        return (Int(window.ws_col), Int(window.ws_row))
    }

    /// Breaks the text between words, if standard output is a terminal. Returns it unchanged otherwise.
    ///
    /// - Parameters:
    ///   - used: the columns of the first line that are taken already.
    ///   - indent: the columns that are left free at the start of the other lines.
    static func wrapped(_ text: String, after used: Int = 0, indent: Int) -> String {
        guard let columns = size?.columns, columns > indent + 20 else { return text }
        var (result, width) = ("", used)
        // The spaces before the next word, which are left out at a line's end.
        var spaces = 0
        var hasWord = false
        for (number, word) in text.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
            if number > 0 { spaces += 1 }
            guard !word.isEmpty else { continue }
            if hasWord, width + spaces + word.count > columns {
                result += "\n" + String(repeating: " ", count: indent)
                width = indent
            } else {
                result += String(repeating: " ", count: spaces)
                width += spaces
            }
            result += word
            width += word.count
            spaces = 0
            hasWord = true
        }
        return result
    }

    /// Prints the lines in place of the former ones. If standard output is no terminal, prints them after those.
    ///
    /// Leaves out lines that don't fit on the screen, so that nothing scrolls. The last line says how many.
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

    /// Clears the screen for ``redraw(_:)``.
    static func clear() {
        if isOutput && !isDumb { print("\u{1b}[2J", terminator: "") }
    }
}
