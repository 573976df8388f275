/// What one step does.
package enum Action: String, Sendable {
    case write, foreignWrite, transfer, publish, deliver, consume, exchange, readHistory
    case crash, dieAtBus, dieAtWrite, loseAcknowledgements, duplicate, cut, mend, setClock, slow
    case snapshot, prune, wipe, recreate, forget, corrupt, upgrade
}

/// One step of a plan. Its own seed decides its details, so that leaving out another step changes nothing of it.
package struct Step: Sendable {
    package var number: Int
    package var node: Int
    package var action: Action
    package var seed: UInt64
}

/// What a seed comes to: how nodes and topic are made, and which steps are taken. Pure.
package struct Plan: Sendable {
    package struct Node: Sendable {
        var id: [UInt8]
        var batch: Int
        var maxMessageBytes: Int
        var isJSON: Bool
        var recentClocks: Int
        var queueLimit: Int
        var checkpointPages: Int
    }

    package var faults: Set<Fault>
    package var partitionCount: Int
    package var nodes: [Node] = []
    package var steps: [Step] = []
    /// Which of the schema's changes are made, by chance.
    var upgradeSeed: UInt64 = 0

    package init(seed: UInt64, options: SimulationOptions) {
        var random = SplitMix(seed: seed &* 0x2545_f491_4f6c_dd1d &+ 1)
        // A few faults at a time: where everything fails at once, little gets far enough to go wrong.
        let share = 1 + random.below(4)
        let during = options.faults.subtracting([.damage])
        faults = Set(during.sorted().filter { _ in random.below(4) < share })
        // Each takes as long as a hundred steps.
        if !random.once(in: 4) { faults.remove(.upgrade) }
        partitionCount = 1 + random.below(4)
        let inChunks = faults.contains(.chunks)
        for _ in 0..<options.nodeCount {
            nodes.append(
                Node(
                    id: random.bytes(16), batch: 1 + random.below(8), maxMessageBytes: inChunks ? 1000 : 900_000,
                    isJSON: random.once(in: 4), recentClocks: random.once(in: 2) ? 1 + random.below(20) : 20_000,
                    queueLimit: random.once(in: 3) ? 2 + random.below(4) : 1000,
                    checkpointPages: random.once(in: 3) ? 4 + random.below(30) : 1000))
        }
        upgradeSeed = random.next()
        let weights = Self.weights(faults)
        let total = weights.reduce(0) { $0 + $1.weight }
        for number in 0..<options.stepCount {
            var left = random.below(total)
            let action = weights.first { entry in
                left -= entry.weight
                return left < 0
            }
            steps.append(
                Step(
                    number: number, node: random.below(options.nodeCount), action: action?.action ?? .write,
                    seed: random.next()))
        }
        // Comes after all steps, and changes none of them. A row that does not fit into a message is not mended by messages.
        if options.faults.contains(.damage), random.once(in: 4), !faults.contains(.chunks) { faults.insert(.damage) }
        if let kept = options.kept.map(Set.init) { steps.removeAll { !kept.contains($0.number) } }
    }

    private static func weights(_ faults: Set<Fault>) -> [(action: Action, weight: Int)] {
        var weights: [(action: Action, weight: Int)] = [
            (.write, 260), (.transfer, 110), (.publish, 120), (.deliver, 60), (.consume, 170), (.exchange, 30),
            (.readHistory, 25),
        ]
        func add(_ fault: Fault, _ action: Action, _ weight: Int) {
            if faults.contains(fault) { weights.append((action, weight)) }
        }
        add(.foreign, .foreignWrite, 120)
        add(.crash, .crash, 35)
        add(.death, .dieAtBus, 30)
        add(.death, .dieAtWrite, 50)
        add(.lostAcknowledgement, .loseAcknowledgements, 30)
        add(.duplicates, .duplicate, 30)
        add(.partition, .cut, 20)
        add(.partition, .mend, 25)
        add(.slow, .slow, 15)
        add(.clocks, .setClock, 25)
        add(.prune, .prune, 20)
        add(.prune, .snapshot, 15)
        add(.wipe, .wipe, 8)
        add(.recreate, .recreate, 8)
        add(.forget, .forget, 15)
        add(.corruption, .corrupt, 25)
        add(.upgrade, .upgrade, 25)
        return weights
    }
}
