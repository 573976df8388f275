import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The number of pages that a commit writes. Writes wear out flash disks, and most commits hold one transaction.
@Suite struct CommitSizeTests {
    /// The number of pages in the write-ahead log. Each has a header of 24 bytes, after the file's header of 32.
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
        // The row, its key, the log, and the read offset with the clock. A page split writes more.
        #expect(written.min() == 4, "\(written)")
        #expect(written.filter { $0 == 4 }.count > written.count / 2, "\(written)")
    }
}
