import Foundation
import GRDB
package import MartletReplica
import MartletStore

extension SyncEngine {
    package func unkept() throws -> [UnkeptTransactions] {
        try read(Unkept.load)
    }

    /// Stops publishing these transactions, and counts them as read back.
    package func giveUp(_ ranges: [ClosedRange<Int64>]) throws {
        try mapErrors { try database.write { try Unkept.add($0, ranges, at: now()) } }
    }
}
