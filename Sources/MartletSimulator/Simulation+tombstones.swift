import MartletStore
import MartletSync

/// Nodes that forget what was deleted, and what they have to tell each other for that.
extension Simulation {
    /// Hears what others say of their clocks, says it, and forgets what was deleted long ago.
    func promise(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard let checker = open.checker, try isSure(node) else { return }
        node.checkLink.isCut = node.link.isCut
        do {
            _ = checker.step(timeout: .zero)
            try checker.promise(UUIDs.make(random.bytes(16)))
            let time = try open.engine.collectedThrough().map { "up to \(self.time.milliseconds - $0) ms ago" }
            note("announces its clock; tombstones collected: \(time ?? "none yet")")
        } catch let error as BusError {
            note("can't announce its clock (\(error.code.rawValue))")
        }
    }

    /// Lets nodes hear of what others refuse, until nothing is left to be said once more.
    func promiseAll() throws {
        guard plan.horizon != nil else { return }
        for round in 0..<4 {
            for _ in 0..<2 { for node in nodes { try alive(node) { try promise(node) } } }
            // What is heard of in the first round may be answered in the second.
            if try !exchangeAll(), round > 0 { return }
        }
    }
}
