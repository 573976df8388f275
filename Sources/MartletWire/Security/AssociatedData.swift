package import MartletBus

/// The associated data that is authenticated and signed together with a payload: topic, key, and all headers that a
/// reader relies on. Part of the wire format: docs/wire-format.md.
package enum AssociatedData {
    private static let prefix = "martlet-"
    /// Headers that are left out: the checksum covers the encrypted payload, and the signature covers all of this.
    private static let left: Set<String> = [WireHeader.checksum, WireHeader.signature]

    /// - Throws: ``WireError`` if a header occurs twice, since a reader uses only one of them.
    package static func encode(topic: String, key: [UInt8], headers: [MessageHeader]) throws(WireError) -> [UInt8] {
        let bound = headers.filter { $0.name.hasPrefix(prefix) && !left.contains($0.name) }.sorted { $0.name < $1.name }
        for (a, b) in zip(bound, bound.dropFirst()) where a.name == b.name {
            throw WireError.unproven("The message has the header \(a.name) twice.")
        }
        var bytes: [UInt8] = []
        func add(_ part: some Collection<UInt8>) {
            withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes += $0 }
            bytes += part
        }
        add("martlet-1".utf8)
        add(topic.utf8)
        add(key)
        for header in bound {
            add(header.name.utf8)
            add(header.value)
        }
        return bytes
    }

    /// Returns the bytes that a signature covers.
    package static func signed(_ associated: [UInt8], _ payload: [UInt8]) -> [UInt8] {
        let count = withUnsafeBytes(of: UInt32(associated.count).bigEndian) { Array($0) }
        return Array("martlet-signature-1".utf8) + count + associated + payload
    }
}
