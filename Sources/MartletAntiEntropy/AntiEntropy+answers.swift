import Foundation
import GRDB
import Logging
import MartletBus
import MartletCore
import MartletEngine
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// Answers the messages of other nodes.
extension AntiEntropy {
    func take(_ incoming: IncomingMessage) {
        let message: AntiEntropyMessage
        do {
            let opened = try engine.messageGuard.open(incoming, topic: bus.topic, node: engine.node)
            message = try AntiEntropyFormat.decode(opened)
        } catch {
            note { $0.ignored += 1 }
            return log.warning(
                "Check message ignored; nothing is lost",
                metadata: ["offset": "\(incoming.position.offset)", "reason": "\(error)"])
        }
        guard message.sender != engine.node, message.wire.header.topic == topic else { return }
        if state.heard.count < Self.maxHeard || state.heard[message.sender] != nil {
            state.heard[message.sender] = engine.instant()
        }
        state.unnoted[message.sender] = WatermarkReport(message, to: engine.node)
        if message.wire.wantsSnapshot { snapshotWanted() }
        remember(message)
        let room = engine.messageGuard.configuration.maxMessageBytes
        state.waiting.add(message, room: room, at: engine.instant())
    }

    /// Remembers which digests were sent for which range.
    func remember(_ message: AntiEntropyMessage) {
        if state.answered[message.check] == nil {
            state.checks.append(message.check)
            if state.checks.count > 32 { state.answered[state.checks.removeFirst()] = nil }
        }
        var answered = state.answered[message.check] ?? Answered()
        func add(_ entity: String, _ range: KeyRange, _ sum: RangeSum) {
            let key = Answered.Key(entity: entity, range: range)
            guard answered.sums.count < 10_000, answered.sums[key]?.count ?? 0 < Self.maxAnswers else { return }
            answered.sums[key, default: []].append((message.step, sum))
        }
        for entity in message.wire.covered { for (range, sum) in entity.sums { add(entity.name, range, sum) } }
        for entity in message.wire.digests {
            var parents: [KeyRange: (count: Int, sum: RangeSum)] = [:]
            for (range, sum) in entity.sums {
                add(entity.name, range, sum)
                guard let parent = range.parent else { continue }
                var known = parents[parent] ?? (0, RangeSum())
                known.count += 1
                known.sum += sum
                parents[parent] = known
            }
            for (range, known) in parents where known.count == 16 { add(entity.name, range, known.sum) }
        }
        state.answered[message.check] = answered
    }

    /// Returns true if a node with the same state has answered already.
    private func isAnswered(
        _ message: AntiEntropyMessage, _ entity: String, _ range: KeyRange, _ sum: RangeSum
    ) -> Bool {
        let answered = state.answered[message.check]?.sums[Answered.Key(entity: entity, range: range)] ?? []
        return answered.contains { $0.step > message.step && $0.sum == sum }
    }

    /// Answers the messages that can be answered now.
    func answerWaiting() throws {
        guard !state.waiting.isEmpty else { return }
        state.waiting.drop(at: engine.instant())
        // Cheaper than a write transaction for each message.
        let known = try VersionVector.known(engine.session)
        var index = 0
        while index < state.waiting.count, !stopSignal.isStopped {
            let message = state.waiting[index]
            if try republish(message) || (message.isCovered(by: known) && answer(message)) {
                state.waiting.remove(at: index)
            } else {
                index += 1
            }
        }
    }

    /// Republishes transactions that the sender refuses for their age.
    ///
    /// - Returns: true if there were any. The message then no longer describes the current state.
    private func republish(_ message: AntiEntropyMessage) throws -> Bool {
        let count = try Republication.answer(message, engine)
        guard count > 0 else { return false }
        log.warning(
            "Tombstones were collected while this node was away; republishing its changes that still count",
            metadata: ["transactions": "\(count)", "node": "\(message.wire.header.makerName)"])
        return true
    }

    /// - Returns: false if the message has to wait.
    private func answer(_ message: AntiEntropyMessage) throws -> Bool {
        do {
            let present = present()
            if message.wire.hasContents, try !merge(message, present) { return false }
            let limit = limit.messageBytes * 8 / 10
            let answers: [AntiEntropyReader.Answer]? = try readStamped { db in
                guard try message.isQuestion || AntiEntropyReader.isReady(db) else { return nil }
                let reader = try AntiEntropyReader(db, engine: engine, topic: topic)
                guard message.isCovered(by: reader.vector) else { return nil }
                var answers: [AntiEntropyReader.Answer] = []
                if message.wire.hasContents {
                    answers.append(
                        try reader.reply(to: message, limit: limit, present: present) {
                            isAnswered(message, $0, $1, $2)
                        })
                }
                if !message.wire.digests.isEmpty {
                    answers.append(
                        try reader.answer(to: message, limit: limit) { isAnswered(message, $0, $1, $2) })
                }
                if message.wire.wantsAnswer {
                    answers.append(
                        AntiEntropyReader.Answer(
                            message: reader.acknowledgement(to: message), isAcknowledgement: true))
                }
                return answers
            }
            guard let answers else { return false }
            if message.step == 0, answers.allSatisfy(\.isAgreed) {
                state.schedule.noteAgreed(at: engine.instant())
                note { $0.agreed += 1 }
            }
            if answers.contains(where: \.isCut) { state.schedule.noteCut() }
            guard message.step < Self.maxStep else { return true }
            for answer in answers where !answer.isEmpty { try send(answer.message) }
            return true
        } catch let error as StoreError where [.corrupt, .invalidArgument].contains(error.code) {
            note { $0.ignored += 1 }
            log.warning(
                "Check message ignored; nothing is lost",
                metadata: ["sender": "\(message.wire.header.makerName)", "reason": "\(error)"])
            return true
        }
    }

    /// Takes over what this node lacks.
    ///
    /// - Returns: false if the message has to wait.
    private func merge(_ message: AntiEntropyMessage, _ present: Set<NodeID>) throws -> Bool {
        let found = try AntiEntropyMerge.merge(message, into: engine, present: present)
        guard let found else { return false }
        report(found, message)
        return true
    }

    private func report(_ found: [FoundDivergence], _ message: AntiEntropyMessage) {
        guard !found.isEmpty else { return }
        note {
            $0.found += found.count
            $0.repaired += found.filter { $0.outcome == .repaired }.count
        }
        let name = message.wire.header.makerName
        for one in found.prefix(10) {
            log.error(
                "Divergence between nodes found",
                metadata: [
                    "table": "\(one.entity.name)", "row": "\(one.identity.plainText)",
                    "column":
                        "\(one.slot.flatMap { slot in one.entity.columns.first { $0.slot == slot }?.name } ?? "")",
                    "what": "\(one.kind.rawValue)", "outcome": "\(one.outcome.rawValue)",
                    "node": "\(name.isEmpty ? message.sender.description : name)",
                ])
        }
        if found.count > 10 {
            log.error(
                "More divergences between nodes found; list them with `martlet verify`",
                metadata: ["count": "\(found.count)", "node": "\(name)"])
        }
    }

    /// Returns the nodes that were heard of lately, on this topic or on the transactions' topic.
    private func present() -> Set<NodeID> {
        let now = engine.instant()
        let here = state.heard.filter { now - $0.value < Self.presence }.map(\.key)
        return Set(here).union((try? heardSince(Self.presence)) ?? []).union([engine.node])
    }

    /// Returns the nodes that transactions came from lately.
    private func heardSince(_ age: Duration) throws -> [NodeID] {
        try engine.session.read {
            try ReadProgress.origins($0, heardAfter: engine.now() - age.wholeMilliseconds)
        }
    }
}

extension AntiEntropyMessage {
    /// True for a message that only asks which of its sender's transactions the receiver has: no rows are compared.
    fileprivate var isQuestion: Bool { wire.wantsAnswer && wire.digests.isEmpty && !wire.hasContents }

    /// Returns true if a node with these transactions can answer. To compare rows, it must have all that the sender
    /// had. To say what it has of the sender, it needs only those of the sender: it may lack one of a third node for
    /// good.
    fileprivate func isCovered(by known: VersionVector) -> Bool {
        isQuestion ? known.covers(vector, of: sender) : known.covers(vector)
    }
}

extension StableID {
    /// The ID for people to read: a UUID that Martlet assigned, or the values.
    var plainText: String {
        guard let values = try? values() else { return "?" }
        if values.count == 1, case .blob(let bytes) = values[0], let node = NodeID(bytes: bytes) {
            return node.description
        }
        return values.map { value in
            switch value {
            case .null: "null"
            case .integer(let value): "\(value)"
            case .real(let value): "\(value)"
            case .text(let value): value
            case .blob(let bytes), .rawText(let bytes): "x'\(Hex.text(bytes.prefix(16)))'"
            case .reference(let reference): "\(reference.entity) \(reference.identity.plainText)"
            }
        }.joined(separator: ", ")
    }
}
