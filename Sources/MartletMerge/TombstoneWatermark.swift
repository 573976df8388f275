package import MartletCore

/// Computes the stamp up to which tombstones may be garbage-collected: the causal-stability watermark. Pure.
///
/// No participating node may still send a change that is stamped at or before the watermark. Each of them has promised
/// "all of my transactions after this number are stamped later than this time", and its transactions up to that number
/// have been received. If a node that was away or is new sends such a change anyway, the change is refused; see
/// ``/MartletAntiEntropy/Republication``.
package enum TombstoneWatermark {
    /// Another node, as known to this node.
    package struct Member: Equatable {
        /// When this node last heard of it, in milliseconds since 1970 by the local clock.
        package var heard: Int64
        /// The node's watermark: everything of it that has not been received is stamped after this time. Nil if it has
        /// promised nothing.
        package var watermark: HybridTime?
        /// True if everything that the node had made when it gave the promise has been received.
        package var isReceived = false

        package init(heard: Int64, watermark: HybridTime? = nil, isReceived: Bool = false) {
            self.heard = heard
            self.watermark = watermark
            self.isReceived = isReceived
        }
    }

    /// - Parameters:
    ///   - horizon: the minimum age of a collected tombstone, and how long to wait for a node that is not heard of, in
    ///     milliseconds.
    ///   - now: the current time in milliseconds since 1970.
    /// - Returns: the watermark; nil if it has to wait for one of the members, or if `now` is less than the horizon and
    ///   one step after 1970.
    package static func compute(_ members: [Member], horizon: Int64, now: Int64) -> HybridTime? {
        let oldest = now - horizon
        // The watermark advances in steps, so that nodes arrive at the same watermark and can compare their data.
        let step = max(1, horizon / 16)
        guard oldest > step else { return nil }
        let watermark = HybridTime(milliseconds: oldest / step * step)
        let isSafe = members.allSatisfy { member in
            guard member.heard >= oldest else { return true }
            return member.isReceived && member.watermark.map { $0 >= watermark } ?? false
        }
        return isSafe ? watermark : nil
    }
}
