import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// How much a commit writes: on a flash disk that is what wears it, and at one transaction a commit most of the time.
@Suite struct CommitSizeTests {
    /// Pages in the write-ahead log, each with a header of 24 bytes behind the file's of 32.
    private func pageCount(_ node: TestNode) throws -> Int {
        let size = try FileManager.default.attributesOfItem(atPath: node.path + "-wal")[.size] as? Int
        return (try #require(size) - 32) / 4120
    }

    @Test func aRemoteChangeDirtiesFourPages() throws {
        let lab = try Lab()
        let a = try lab.node("a")
        let c = try lab.node("c")
        var written: [Int] = []
        for number in 1...12 {
            try a.write("INSERT INTO setting VALUES ('key \(number)', \(number))")
            try a.publish()
            let before = try pageCount(c)
            #expect(try c.consume().applied == 1)
            written.append(try pageCount(c) - before)
        }
        // The row, its key, the log, and how far this node has read, with the clock. More where a page is split.
        #expect(written.min() == 4, "\(written)")
        #expect(written.filter { $0 == 4 }.count > written.count / 2, "\(written)")
    }
}
