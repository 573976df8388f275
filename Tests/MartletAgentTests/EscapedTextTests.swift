import MartletAgent
import Testing

@Suite struct EscapedTextTests {
    /// Errors of several lines quote names that other nodes chose.
    @Test func controlCharactersAreEscapedInEachLine() {
        #expect(
            EscapedText.escapedLines("Error: \u{1b}[2J of grün\n\n  second\r\u{202e}line\n")
                == "Error: \\u{1B}[2J of grün\n\n  second\\r\\u{202E}line\n")
    }
}
