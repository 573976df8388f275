/// When a last-writer-wins register was set, and by which node. The later stamp wins; at equal times, the higher node
/// wins.
public struct Stamp: Hashable, Comparable, Sendable {
    public var time: HybridTime
    public var node: NodeID

    public init(time: HybridTime, node: NodeID) {
        self.time = time
        self.node = node
    }

    /// The stamp that is earlier than that of any change.
    public static let zero = Stamp(time: .zero, node: .none)

    public static func < (a: Stamp, b: Stamp) -> Bool { a.time == b.time ? a.node < b.node : a.time < b.time }
}
