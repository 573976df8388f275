/// The action of one step.
package enum Action: String, Sendable {
    case write, foreignWrite, transfer, publish, deliver, consume, exchange, readHistory
    case crash, dieAtBus, dieAtWrite, loseAcknowledgements, duplicate, cut, repair, setClock, slow
    case snapshot, prune, wipe, recreate, forget, corrupt, upgrade
    case announceClock
    case fillDisk, freeDisk, backUp, restore, copy
    case fork, misdate, restamp, shrinkTopic, loseSnapshots
}

extension Action {
    /// True for actions on the machine on which a node started, not on a copy of it.
    var isOfOneMachine: Bool { [.fillDisk, .freeDisk, .backUp, .restore, .copy].contains(self) }
}

/// One step of a plan. Its own seed determines its details, so that leaving out another step doesn't change it.
package struct Step: Sendable {
    package var number: Int
    package var node: Int
    package var action: Action
    package var seed: UInt64
}

/// The plan for a seed: the configuration of the nodes and the topic, and the steps. Pure.
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
    /// Chooses the schema changes at random.
    var upgradeSeed: UInt64 = 0
    /// The retention of tombstones. Nil: forever.
    var horizon: Duration?

    /// - Parameter isGenerated: whether the seed determines the number of nodes, if the options don't.
    package init(seed: UInt64, options: SimulationOptions, isGenerated: Bool = false) {
        var sizes = SplitMix(seed: seed &* 0x9fb2_1c65_1e98_df25)
        let nodeCount = options.nodeCount ?? (isGenerated ? sizes.pick([2, 2, 3, 3, 4, 5]) : 3)
        var random = SplitMix(seed: seed &* 0x2545_f491_4f6c_dd1d &+ 1)
        // A few faults at a time: if everything fails at once, little gets far enough to go wrong.
        let share = 1 + random.below(4)
        let during = options.faults.subtracting(Self.later)
        faults = Set(during.sorted().filter { _ in random.below(4) < share })
        // An upgrade takes as long as a hundred steps, so most plans drop it, unless fewer than four faults were
        // requested.
        if options.faults.count >= 4, !random.once(in: 4) { faults.remove(.upgrade) }
        partitionCount = 1 + random.below(4)
        let inChunks = faults.contains(.chunks)
        for _ in 0..<nodeCount {
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
                    number: number, node: random.below(nodeCount), action: action?.action ?? .write,
                    seed: random.next()))
        }
        // Added after all steps, and changes none of them. Not combined with chunks: anti-entropy can't repair a row
        // that doesn't fit into a message.
        if options.faults.contains(.damage), random.once(in: 4), !faults.contains(.chunks) { faults.insert(.damage) }
        addLater(seed, options)
        if let kept = options.kept.map(Set.init) { steps.removeAll { !kept.contains($0.number) } }
    }

    /// Faults that are chosen after all others, and don't change plans without them.
    private static let later: Set<Fault> = [
        .damage, .diskFull, .restore, .copy, .collect, .lostSnapshots, .fork, .controlRecords, .lostConnections,
        .fewerPartitions, .restamp,
    ]

    /// Replaces some steps with those of the later faults.
    private mutating func addLater(_ seed: UInt64, _ options: SimulationOptions) {
        // Each fault has a random generator of its own, so that another fault doesn't change it. If fewer than four
        // faults were requested, each of these is always included.
        func chance(_ fault: Fault, _ number: UInt64) -> SplitMix? {
            var random = SplitMix(seed: (seed &* 0x9e37_79b9_7f4a_7c15) ^ number)
            let isChosen = random.once(in: 4) || options.faults.count < 4
            return isChosen && options.faults.contains(fault) ? random : nil
        }
        let part = 60
        if var random = chance(.diskFull, 1) {
            faults.insert(.diskFull)
            for start in stride(from: 0, to: steps.count, by: part) {
                let full = start + random.below(min(part, steps.count - start))
                let free = full + 1 + random.below(part / 2)
                replace(full, .fillDisk)
                replace(free, .freeDisk, node: steps[full].node)
            }
        }
        if var random = chance(.restore, 2) {
            keepTopic()
            faults.insert(.restore)
            for start in stride(from: 0, to: steps.count, by: part) {
                let backUp = start + random.below(min(part / 2, steps.count - start))
                let restore = backUp + 4 + random.below(part / 2)
                replace(backUp, .backUp)
                replace(restore, .restore, node: steps[backUp].node)
            }
        }
        if var random = chance(.copy, 3) {
            faults.insert(.copy)
            replace(random.below(min(part / 2, steps.count)), .copy)
        }
        // Nobody republishes transactions that a store had published under a former node ID and that others refuse.
        if faults.isDisjoint(with: [.restore, .copy]), var random = chance(.collect, 4) {
            faults.insert(.collect)
            horizon = .seconds(5 + random.below(25))
            for number in steps.indices where random.once(in: 7) { replace(number, .announceClock) }
            let away = random.below(nodes.count)
            for start in stride(from: 0, to: steps.count, by: part) {
                let cut = start + random.below(part / 3)
                replace(cut, .cut, node: away)
                replace(cut + part / 3 + random.below(part / 2), .repair, node: away)
            }
        }
        // What a lost snapshot had is still on the first node, which must keep its file and its place in the topic.
        if faults.isDisjoint(with: [.restore, .copy, .collect]), var random = chance(.lostSnapshots, 5) {
            keepTopic()
            faults.insert(.lostSnapshots)
            for number in steps.indices {
                switch random.below(20) {
                case 0, 1: replace(number, .snapshot)
                case 2, 3: replace(number, .prune)
                case 4: replace(number, .loseSnapshots)
                default: break
                }
            }
        }
        if faults.isDisjoint(with: [.restore, .copy, .collect, .lostSnapshots]), var random = chance(.fork, 6) {
            keepTopic()
            keepMessages()
            faults.insert(.fork)
            for start in stride(from: 0, to: steps.count, by: part) {
                replace(start + random.below(min(part, steps.count - start)), .fork)
            }
        }
        if chance(.controlRecords, 7) != nil { faults.insert(.controlRecords) }
        if chance(.lostConnections, 8) != nil { faults.insert(.lostConnections) }
        if faults.isDisjoint(with: [.restore, .fork, .lostSnapshots]), var random = chance(.fewerPartitions, 9) {
            faults.insert(.fewerPartitions)
            partitionCount = max(partitionCount, 2 + random.below(2))
            for start in stride(from: 0, to: steps.count, by: part) {
                replace(start + random.below(min(part, steps.count - start)), .shrinkTopic)
            }
        }
        // No other node may apply what is replaced later, nor put it into a snapshot.
        if faults.isDisjoint(with: [.restore, .copy, .collect, .lostSnapshots]), var random = chance(.restamp, 10) {
            keepMessages()
            keepClocks()
            faults.insert(.restamp)
            for start in stride(from: 0, to: steps.count, by: part) {
                let misdate = start + random.below(min(part / 2, steps.count - start))
                let restamp = misdate + 2 + random.below(part / 3)
                let fork = restamp + 1 + random.below(4)
                replace(misdate, .misdate)
                replace(restamp, .restamp, node: steps[misdate].node)
                if faults.contains(.fork) { replace(fork, .fork, node: steps[misdate].node) }
            }
        }
    }

    /// Keeps the topic: transactions that a restored store had published before only exist there, and nobody else can
    /// republish them.
    private mutating func keepTopic() {
        faults.subtract([.wipe, .recreate, .forget])
        for index in steps.indices where [.wipe, .recreate, .forget].contains(steps[index].action) {
            steps[index].action = .exchange
        }
    }

    /// Lets the topic drop nothing: if it lost messages of a former node ID, nobody else would have them.
    private mutating func keepMessages() {
        faults.remove(.prune)
        for index in steps.indices where [.prune, .snapshot].contains(steps[index].action) {
            steps[index].action = .exchange
        }
    }

    private mutating func keepClocks() {
        faults.remove(.clocks)
        for index in steps.indices where steps[index].action == .setClock { steps[index].action = .exchange }
    }

    private mutating func replace(_ number: Int, _ action: Action, node: Int? = nil) {
        guard steps.indices.contains(number) else { return }
        steps[number].action = action
        if let node { steps[number].node = node }
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
        add(.partition, .repair, 25)
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
