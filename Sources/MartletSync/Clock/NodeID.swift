public import Foundation

/// Which node: a UUID, ordered by its bytes.
public struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    public init(_ uuid: UUID) {
        self = withUnsafeBytes(of: uuid.uuid) { NodeID(exactly: $0) }
    }

    /// A node from the 16 bytes of its UUID. Nil for any other number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        // Called for each message, and slow byte by byte through the collection.
        if let node = bytes.withContiguousStorageIfAvailable({ NodeID(exactly: UnsafeRawBufferPointer($0)) }) {
            self = node
        } else {
            self = Array(bytes).withUnsafeBytes { NodeID(exactly: $0) }
        }
    }

    private init(exactly bytes: UnsafeRawBufferPointer) {
        high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    private init() {
        high = 0
        low = 0
    }

    /// No node: the author of what was there before Martlet came. Lower than every node.
    public static let none = NodeID()

    public var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian) { Array($0) } + withUnsafeBytes(of: low.bigEndian) { Array($0) }
    }

    public var uuid: UUID {
        let b = bytes
        return UUID(
            uuid: (b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15])
        )
    }

    public var description: String { uuid.uuidString }

    public static func < (a: NodeID, b: NodeID) -> Bool { a.high == b.high ? a.low < b.low : a.high < b.high }
}

/// When a register was set, and by which node: later wins, and of equal times the higher node.
public struct Stamp: Hashable, Comparable, Sendable {
    public var time: HybridTime
    public var node: NodeID

    public init(time: HybridTime, node: NodeID) {
        self.time = time
        self.node = node
    }

    /// Earlier than every change.
    public static let zero = Stamp(time: .zero, node: .none)

    public static func < (a: Stamp, b: Stamp) -> Bool { a.time == b.time ? a.node < b.node : a.time < b.time }
}
