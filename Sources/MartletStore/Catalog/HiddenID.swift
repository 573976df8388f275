package import Foundation
package import MartletCore

/// Derives the UUIDs that Martlet assigns to rows without an identity of their own.
///
/// Derived, not random, so that the same row always gets the same ID: copies of one database agree when they are
/// attached with one seed, and history can name a row before the ID is stored. Version 8 of RFC 9562, from SHA-256.
package enum HiddenID {
    /// For a row that was there when its table was attached.
    package static func existing(namespace: UUID, entity: String, row: Int64) -> StableID {
        derive(namespace, "row", entity, row)
    }

    /// For a row that was inserted under this change id.
    ///
    /// - Parameter time: when, in milliseconds since 1970: a file that was restored from a backup gives its change ids
    ///   again.
    package static func inserted(namespace: UUID, change: Int64, time: Int64) -> StableID {
        derive(namespace, "change", "", change, time)
    }

    /// For a row that something refers to, and that is not there.
    ///
    /// - Parameter time: when the change was made that refers to it, in milliseconds since 1970.
    package static func reserved(namespace: UUID, entity: String, change: Int64, time: Int64) -> StableID {
        derive(namespace, "reserved", entity, change, time)
    }

    private static func derive(
        _ namespace: UUID, _ purpose: String, _ entity: String, _ number: Int64, _ time: Int64? = nil
    ) -> StableID {
        var name = Data()
        withUnsafeBytes(of: namespace.uuid) { name.append(contentsOf: $0) }
        name.append(contentsOf: purpose.utf8)
        name.append(0)
        name.append(contentsOf: entity.utf8)
        name.append(0)
        withUnsafeBytes(of: number.bigEndian) { name.append(contentsOf: $0) }
        if let time { withUnsafeBytes(of: time.bigEndian) { name.append(contentsOf: $0) } }
        var bytes = Array(name.withUnsafeBytes { ContentDigest.sha256($0) }.prefix(16))
        bytes[6] = bytes[6] & 0x0f | 0x80
        bytes[8] = bytes[8] & 0x3f | 0x80
        return StableID(hidden: bytes)
    }
}
