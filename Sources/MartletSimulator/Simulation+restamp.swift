import MartletSync

/// A clock that is far ahead for a while, and the correction of the stamps that were made under it.
extension Simulation {
    /// Lets the node write under a clock that is a day ahead, and corrects the clock. Other nodes keep what it has
    /// stamped pending.
    func misdate(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard try isSure(node) else { return }
        node.clock.set(time.milliseconds + 86_400_000)
        Machine.setTime(node.clock.milliseconds)
        defer {
            node.clock.correct()
            Machine.setTime(node.clock.milliseconds)
        }
        note("has a clock that is a day ahead, for this step")
        let isForeign = plan.faults.contains(.foreign) && random.once(in: 3)
        try write(node, isForeign: isForeign)
        // What is not stamped here is not stamped with this time.
        switch random.below(4) {
        case 0: break
        case 1: _ = try open.engine.apply([], topic: topic.name)
        default: try publish(node)
        }
    }

    func restamp(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard try isSure(node) else { return }
        let report = try open.engine.restamp()
        note("restamps \(report.rows) rows, and replaces \(report.replaced) transactions")
    }
}
