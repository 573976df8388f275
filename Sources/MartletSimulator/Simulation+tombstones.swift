import MartletStore
import MartletSync

/// Garbage collection of tombstones, and the clock announcements that it requires.
extension Simulation {
    /// Reads other nodes' clock announcements, announces the node's own clock, and collects tombstones.
    func announceClock(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard let antiEntropy = open.antiEntropy, try isSure(node) else { return }
        node.checkLink.isCut = node.link.isCut
        do {
            _ = antiEntropy.step(timeout: .zero)
            try antiEntropy.report(UUIDs.make(random.bytes(16)))
            let time = try TombstoneCollection(open.engine).collectedThrough().map {
                "up to \(self.time.milliseconds - $0) ms ago"
            }
            note("announces its clock; tombstones collected: \(time ?? "none yet")")
        } catch let error as BusError {
            note("can't announce its clock (\(error.code.rawValue))")
        }
    }

    /// Repeats the exchange until nothing is left to republish, so that nodes learn what others refuse.
    func reportAll() throws {
        guard plan.horizon != nil else { return }
        for round in 0..<4 {
            for _ in 0..<2 { for node in nodes { try alive(node) { try announceClock(node) } } }
            // News from the first round may only be answered in the second.
            if try !exchangeAll(), round > 0 { return }
        }
    }
}
