package import GRDB
package import MartletCore
import MartletWire

/// The stamps of this node's transactions from some sequence on: the broker, or the maker of a snapshot, lacks them.
package struct UnseenStamps: Equatable {
    /// The time of the first such transaction, by the node ID that its stamps name. After `martlet fork`, that is the
    /// former ID for changes that no node had.
    private var firstTimes: [NodeID: HybridTime]

    /// All stamps of a node.
    package static func all(of node: NodeID) -> UnseenStamps { UnseenStamps(firstTimes: [node: .zero]) }

    package static let none = UnseenStamps(firstTimes: [:])

    private init(firstTimes: [NodeID: HybridTime]) { self.firstTimes = firstTimes }

    /// - Parameters:
    ///   - own: this node.
    ///   - sequence: the first that is lacking.
    package init(_ db: Database, of own: NodeID, from sequence: Int64) throws {
        var times: [NodeID: HybridTime] = [:]
        let hasIngested = try NodeDirectory.hasSource(db)
        try Outbox.forEach(db, in: sequence...Int64.max) { entry in
            guard let transaction = try entry.beginning(db) else { return true }
            let node = transaction.clockedBy
            let time = HybridTime(rawValue: transaction.hlc)
            times[node] = min(times[node] ?? time, time)
            // What a fork has moved comes first, and all that follows has later stamps of this node, or those of
            // another system.
            return node != own || hasIngested
        }
        firstTimes = times
    }

    package func contains(_ stamp: Stamp) -> Bool {
        firstTimes[stamp.node].map { stamp.time >= $0 } ?? false
    }
}
