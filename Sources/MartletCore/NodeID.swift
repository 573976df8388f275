public import Foundation

/// The ID of a node: a UUID, ordered by its bytes.
public struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    public init(_ uuid: UUID) {
        self = withUnsafeBytes(of: uuid.uuid) { NodeID(exactly: $0) }
    }

    /// Creates an ID from the 16 bytes of its UUID. Returns nil for any other number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        // This runs for each message, and reading byte by byte through the collection is slow.
        if let node = bytes.withContiguousStorageIfAvailable({ NodeID(exactly: UnsafeRawBufferPointer($0)) }) {
            self = node
        } else {
            self = Array(bytes).withUnsafeBytes { NodeID(exactly: $0) }
        }
    }

    /// Creates an ID from its UUID as text, in either case. Returns nil for any other text.
    ///
    /// Foundation's UUID parser takes longer than parsing all other headers of a message.
    package init?(text: [UInt8]) {
        guard text.count == 36 else { return nil }
        var (high, low): (UInt64, UInt64) = (0, 0)
        var digits = 0
        for (place, character) in text.enumerated() {
            if [8, 13, 18, 23].contains(place) {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let digit = Hex.value(character).map({ UInt64($0) }) else { return nil }
            if digits < 16 { high = high << 4 | digit } else { low = low << 4 | digit }
            digits += 1
        }
        (self.high, self.low) = (high, low)
    }

    private init(exactly bytes: UnsafeRawBufferPointer) {
        high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    private init() {
        high = 0
        low = 0
    }

    /// No node: the author of data that existed before Martlet was attached. Lower than every node.
    public static let none = NodeID()

    public var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            count = 16
        }
    }

    public var uuid: UUID { UUID(uuid: bytes.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }) }

    public var description: String { uuid.uuidString }

    public static func < (a: NodeID, b: NodeID) -> Bool { a.high == b.high ? a.low < b.low : a.high < b.high }
}
