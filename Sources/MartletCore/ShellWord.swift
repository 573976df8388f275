/// A word of a command that a person copies into a shell.
package enum ShellWord {
    /// Returns the word as it is, or in single quotes if the shell would split or change it.
    package static func quoted(_ word: String) -> String {
        guard word.isEmpty || !word.utf8.allSatisfy(plain.contains) else { return word }
        // A single quote can't stand between single quotes.
        let parts = word.split(separator: "'", omittingEmptySubsequences: false)
        return "'\(parts.joined(separator: "'\\''"))'"
    }

    /// The characters that no shell gives a meaning to, wherever they stand.
    private static let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:@,".utf8)
}
