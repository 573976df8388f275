import Foundation
package import MartletCore
import MartletReplica
package import MartletWire

/// Whether a transaction of another node may be merged, as far as that doesn't depend on this node's tables. Pure:
/// ``Acceptance`` does what follows.
package enum TransactionVerdict: Equatable {
    case acceptable
    /// It was written before the watermark up to which tombstones were collected here: it could revive deleted rows.
    case late
    case refused(WireError)

    /// - Parameters:
    ///   - envelope: what the headers of its message say.
    ///   - byteCount: the size of the whole transaction.
    ///   - maxRowBytes: the limit for one change.
    ///   - watermark: the time up to which tombstones were garbage-collected here.
    package static func judge(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope, byteCount: Int, maxRowBytes: Int,
        watermark: HybridTime
    ) throws -> TransactionVerdict {
        guard transaction.origin == envelope.origin, transaction.sequence == envelope.sequence else {
            return .refused(.namesDiffer)
        }
        // No change can be larger than the whole transaction.
        if byteCount > maxRowBytes {
            do {
                try transaction.checkSizes(maxRowBytes)
            } catch let error as WireError {
                return .refused(error)
            }
        }
        guard HybridTime(rawValue: transaction.header.hlc) > watermark else { return .late }
        let sequence = transaction.header.sequence
        let isValid = transaction.header.restates.allSatisfy { $0 > 0 && $0 < sequence }
        return isValid ? .acceptable : .refused(.replacesLater)
    }
}

extension WireError {
    static let namesDiffer = WireError("The headers and the payload name different transactions.")
    static let replacesLater = WireError("It replaces a transaction that comes after it.")

    /// Returns the error for a transaction that arrived after the tombstones of its time were collected.
    static func beforeWatermark(_ cut: HybridTime) -> WireError {
        let date = Date(milliseconds: cut.milliseconds).formatted(.iso8601)
        return WireError(
            "It was written before \(date), and the tombstones of that time were collected here: its author was away "
                + "too long. The author republishes what still counts, as soon as it hears of that.")
    }
}
