package import Foundation
package import MartletCore

/// Derives the UUIDs that Martlet assigns to rows that have no identity of their own, in random order. ``HiddenIDRule``
/// decides which rows get such an ID, and which get one that ascends.
///
/// They are derived, not random, so that the same row always gets the same ID: copies of one database agree if they are
/// attached with the same seed, and the history can identify a row before its ID is stored. They are UUIDs of version 8
/// (RFC 9562), made with SHA-256.
package enum HiddenID {
    /// Returns the ID of a row that existed when its table was attached.
    package static func existing(namespace: UUID, entity: String, row: Int64) -> StableID {
        derive(namespace, "row", entity, [row])
    }

    /// Returns the ID of a row that was inserted by this change.
    ///
    /// - Parameter time: The time of the change, in milliseconds since 1970. Change IDs alone are not enough: a file
    ///   that was restored from a backup assigns them again.
    package static func inserted(namespace: UUID, change: Int64, time: Int64) -> StableID {
        derive(namespace, "change", "", [change, time])
    }

    /// Returns the ID of a row that another row refers to, but that doesn't exist.
    ///
    /// - Parameter time: The time of the change that refers to the row, in milliseconds since 1970.
    package static func reserved(namespace: UUID, entity: String, change: Int64, time: Int64) -> StableID {
        derive(namespace, "reserved", entity, [change, time])
    }

    private static func derive(_ namespace: UUID, _ purpose: String, _ entity: String, _ numbers: [Int64]) -> StableID {
        var bytes = Array(digest(namespace, purpose, entity, numbers).prefix(16))
        bytes[6] = bytes[6] & 0x0f | 0x80
        bytes[8] = bytes[8] & 0x3f | 0x80
        return StableID(hidden: bytes)
    }

    /// Returns the SHA-256 of what an ID is derived from.
    static func digest(_ namespace: UUID, _ purpose: String, _ entity: String, _ numbers: [Int64]) -> [UInt8] {
        var name: [UInt8] = []
        name.reserveCapacity(64 + entity.utf8.count)
        withUnsafeBytes(of: namespace.uuid) { name.append(contentsOf: $0) }
        name.append(contentsOf: purpose.utf8)
        name.append(0)
        name.append(contentsOf: entity.utf8)
        name.append(0)
        for number in numbers { withUnsafeBytes(of: number.bigEndian) { name.append(contentsOf: $0) } }
        return name.withUnsafeBytes { ContentDigest.sha256($0) }
    }
}
