package import MartletCore

/// Up to which stamp tombstones may be forgotten. Pure.
///
/// Nothing that is stamped at or before the cut may come any more from a node that takes part. Each of them has
/// promised: "all of my transactions after this number are stamped later than this time", and what it had made until
/// then has been received. What comes from others all the same, from a node that was away or is new, is refused; see
/// ``Restatement``.
package enum TombstoneCut {
    /// Another node, as far as it is known here.
    package struct Member: Equatable {
        /// When it was last heard of, in milliseconds since 1970 by this node's clock.
        package var heard: Int64
        /// The time after which all is stamped that is not received. Nil where it has promised nothing.
        package var watermark: HybridTime?
        /// True where all is here that it had made when it promised.
        package var isReceived = false

        package init(heard: Int64, watermark: HybridTime? = nil, isReceived: Bool = false) {
            self.heard = heard
            self.watermark = watermark
            self.isReceived = isReceived
        }
    }

    /// - Parameters:
    ///   - horizon: how old tombstones become at least, and how long a node that is not heard of is waited for, in
    ///     milliseconds.
    ///   - now: in milliseconds since 1970.
    /// - Returns: nil where one of the members has to be waited for.
    package static func cut(_ members: [Member], horizon: Int64, now: Int64) -> HybridTime? {
        let oldest = now - horizon
        // In steps, so that nodes come to the same cut, and can compare what they have.
        let step = max(1, horizon / 16)
        guard oldest > step else { return nil }
        let cut = HybridTime(milliseconds: oldest / step * step)
        let isSafe = members.allSatisfy { member in
            guard member.heard >= oldest else { return true }
            return member.isReceived && member.watermark.map { $0 >= cut } ?? false
        }
        return isSafe ? cut : nil
    }
}
