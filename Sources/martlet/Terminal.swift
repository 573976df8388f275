import Foundation

/// What a person at a terminal sees, and a program that reads the same does not: colours, and lines that are written
/// over.
enum Terminal {
    static let isOutput = isatty(STDOUT_FILENO) == 1
    static let isErrorOutput = isatty(STDERR_FILENO) == 1
    private static let isDumb = ProcessInfo.processInfo.environment["TERM"] == "dumb"
    /// Whether a line can be kept up on standard error: what goes to standard output would break it elsewhere.
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

    /// The text in a colour, where standard output is a terminal that has any.
    static func coloured(_ text: String, _ colour: Colour?) -> String {
        guard hasColour, let colour else { return text }
        return "\u{1b}[\(colour.rawValue)m\(text)\u{1b}[0m"
    }

    /// Columns and rows, where standard output is a terminal that says so.
    static var size: (columns: Int, rows: Int)? { isOutput ? dimensions(of: STDOUT_FILENO) : nil }

    /// What a line may take without being wrapped, where standard error is a terminal that says so.
    static var errorColumns: Int? {
        // In the last column, terminals differ in where the cursor is afterwards.
        isErrorOutput ? dimensions(of: STDERR_FILENO).map { $0.columns - 1 } : nil
    }

    private static func dimensions(of descriptor: Int32) -> (columns: Int, rows: Int)? {
        var window = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
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
        // Those before the next word. Where a line ends they are left out.
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

    /// Prints the lines where the same lines stood before. After them, where standard output is no terminal.
    ///
    /// What has no place on the screen is left out, so that nothing scrolls: the last line says how much of it there
    /// is.
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
