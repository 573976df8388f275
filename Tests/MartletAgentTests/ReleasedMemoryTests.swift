import CMartletSystem
import Foundation
import Testing

@Suite struct ReleasedMemoryTests {
    /// The resident memory of this process that files back, in kB.
    private func residentFiles() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssFile:") })
        return try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) })
    }

    /// Releases the code of this process while it runs, on this thread and on others.
    @Test func releasedCodeIsLoadedAgain() async throws {
        let before = try residentFiles()
        martlet_release_memory()
        let after = try residentFiles()
        #expect(after < before)
        let sums = await withTaskGroup(of: Int.self) { group in
            for part in 0..<4 {
                group.addTask {
                    martlet_release_memory()
                    return (0..<1000).map { String($0 + part) }.reduce(0) { $0 + (Int($1) ?? 0) }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sums == (0..<4).reduce(0) { $0 + 499_500 + 1000 * $1 })
    }
}
