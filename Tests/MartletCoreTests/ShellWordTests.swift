import Foundation
import MartletCore
import Testing

@Suite struct ShellWordTests {
    @Test func plainWordsStayAsTheyAre() {
        for word in ["store.sqlite", "/var/lib/martlet/a-b_c.db", "User:phone", "a.example:9092,b.example:9092"] {
            #expect(ShellWord.quoted(word) == word)
        }
    }

    @Test func theShellGetsTheWordBackUnchanged() throws {
        let words = [
            "", "my store.sqlite", "it's.sqlite", "'", "a\"b", "$HOME", "`id`", "a\\b", "*", "~", "a;b", "#a", "Läden",
            "a\nb",
        ]
        for word in words {
            let shell = Process()
            shell.executableURL = URL(fileURLWithPath: "/bin/sh")
            shell.arguments = ["-c", "printf %s \(ShellWord.quoted(word))"]
            let output = Pipe()
            shell.standardOutput = output
            try shell.run()
            let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
            shell.waitUntilExit()
            #expect(String(decoding: bytes, as: UTF8.self) == word)
        }
    }
}
