package import Foundation

/// Writes to standard error.
package enum ErrorOutput {
    /// Writes the text, or as much of it as standard error takes: a log on a full disk, or whose reader is gone, must
    /// not end the program. `FileHandle.write(_:)` traps there.
    package static func write(_ text: String, to file: FileHandle = .standardError) {
        try? file.write(contentsOf: Data(text.utf8))
    }
}
