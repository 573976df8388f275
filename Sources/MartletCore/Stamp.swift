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
