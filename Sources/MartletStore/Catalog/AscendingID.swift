package import Foundation
package import MartletCore

/// Derives the UUIDs that Martlet assigns to rows that have no identity of their own, so that they ascend in the order
/// in which one store makes them. The index of such IDs then grows on a few pages, instead of on a random page for each
/// row (docs/decisions/0058).
///
/// They are derived from the log, as those of ``HiddenID`` are, and are UUIDs of version 8 (RFC 9562), too. Whoever
/// gets an ID takes all of it for opaque: no code reads the origin or the order of rows out of it.
package struct AscendingID: Sendable {
    /// What a change needs an ID for. Different IDs for one change differ in this or in their digest.
    package enum Purpose: UInt8, CaseIterable, Sendable {
        /// The change inserts the row.
        case inserted
        /// The change refers to the row, which doesn't exist.
        case reserved
        /// The change takes the row's former ID away, and another row has the ID that its columns form.
        case renamed
    }

    /// Changes from this ID on get no ascending IDs: there are 40 bits for them. A store that logs 10,000 changes a
    /// second gets there after three years.
    package static let changeLimit: Int64 = 1 << 40

    /// Integer keys from this one on get no ascending IDs: there are 62 bits for them.
    package static let rowLimit: Int64 = 1 << 62

    private let namespace: UUID
    private let prefix: [UInt8]

    package init(namespace: UUID) {
        self.namespace = namespace
        prefix = Array(HiddenID.digest(namespace, "origin", "", []).prefix(4))
    }

    /// Returns the ID that a change gives to a row: 32 bits for the namespace, the change ID (40 bits), the purpose (2
    /// bits), and 48 bits of a digest of everything, including what the rest has no room for. Nil if the change ID is
    /// out of bounds.
    ///
    /// - Parameter time: The time of the change, in milliseconds since 1970. A file that was restored from a backup
    ///   assigns change IDs again, at another time.
    package func id(
        _ purpose: Purpose, change: Int64, time: Int64, entity: String = "", row: Int64 = 0
    ) -> StableID? {
        guard (0..<Self.changeLimit).contains(change) else { return nil }
        let number = UInt64(change)
        var bytes = prefix
        bytes.reserveCapacity(16)
        bytes.append(UInt8(truncatingIfNeeded: number >> 32))
        bytes.append(UInt8(truncatingIfNeeded: number >> 24))
        // Four bits of this byte are the UUID's version, and two of the one after the next its variant.
        bytes.append(UInt8(truncatingIfNeeded: number >> 20) & 0x0f | 0x80)
        bytes.append(UInt8(truncatingIfNeeded: number >> 12))
        bytes.append(UInt8(truncatingIfNeeded: number >> 6) & 0x3f | 0x80)
        bytes.append(UInt8(truncatingIfNeeded: number << 2) | purpose.rawValue)
        let numbers = [Int64(purpose.rawValue), change, time, row]
        bytes.append(contentsOf: HiddenID.digest(namespace, "ascending", entity, numbers).prefix(6))
        return StableID(hidden: bytes)
    }

    /// Returns a function for the IDs of rows that existed when their table was attached, by integer key: 60 bits for
    /// the namespace and the table, and the key (62 bits). Nil for keys that are out of bounds.
    package func existing(_ entity: String) -> (Int64) -> StableID? {
        var prefix = Array(HiddenID.digest(namespace, "ascending row", entity, []).prefix(8))
        prefix[6] = prefix[6] & 0x0f | 0x80
        return { [prefix] row in
            guard (0..<Self.rowLimit).contains(row) else { return nil }
            // The highest bits are the UUID's variant.
            let number = UInt64(row) | 1 << 63
            return StableID(hidden: withUnsafeBytes(of: number.bigEndian) { prefix + Array($0) })
        }
    }
}
