public import Foundation
import GRDB
package import MartletCore
public import MartletStore

/// A pending change: a row, a reference or a change that can't be applied yet.
public struct ParkedItem: Sendable, Equatable {
    /// The item's ID, for `Store.discardParked(_:)`: `r` and a number for a row, `p` and twelve hexadecimal digits for
    /// a reference, `t` and a number for a transaction or a part of one.
    public var id: String
    public var reason: ParkReason
    public var detail: String?
    public var entity: String?
    public var identity: StableID?
    public var origin: NodeID?
    public var sequence: Int64?
    public var values: [String: Value]
    public var since: Date
}

extension Store {
    /// Returns the pending changes. Includes updates of deleted rows, and changes that a filter rejects, only on
    /// request: nothing that would let them apply arrives by itself.
    public func parked(includingDeleted: Bool = false) throws -> [ParkedItem] {
        try readSync { try ParkedItem.all($0, includingDeleted: includingDeleted) } ?? []
    }
}
