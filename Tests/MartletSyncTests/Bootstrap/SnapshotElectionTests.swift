import Foundation
import MartletSync
import MartletTestSupport
import Testing

/// Which node makes the next snapshot.
@Suite struct SnapshotElectionTests {
    private let nodes = (0..<20).map { _ in NodeID(UUID()) }
    private let begin = Date(timeIntervalSince1970: 1_000_000)
    private let start = ContinuousClock.now

    private func election(_ node: NodeID) -> SnapshotElection {
        var configuration = SnapshotConfiguration()
        configuration.interval = .seconds(1000)
        configuration.minTransactions = 10
        return SnapshotElection(node: node, configuration: configuration, since: begin)
    }

    private func snapshot(_ maker: NodeID, at time: TimeInterval, state: SnapshotInfo.State = .complete) -> SnapshotInfo
    {
        SnapshotInfo(
            id: UUID(), maker: maker, makerName: "", made: begin, arrived: begin.addingTimeInterval(time), state: state,
            messageCount: 1, byteCount: 1, positions: [0: 100])
    }

    /// The time in seconds after the beginning, by both clocks.
    private func present(_ time: TimeInterval) -> SnapshotCycle.Present {
        SnapshotCycle.Present(instant: start + .seconds(time), date: begin.addingTimeInterval(time))
    }

    private func due(_ node: NodeID, _ snapshots: [SnapshotInfo], at time: TimeInterval, read: Int64 = 200) -> Bool {
        election(node).isDue(snapshots, .init(positions: [0: read]), now: begin.addingTimeInterval(time))
    }

    @Test func theMakerOfTheLastSnapshotMakesTheNextAndOthersStepInOneByOne() {
        let made = [snapshot(nodes[0], at: 0)]
        #expect(nodes.filter { due($0, made, at: 999) } == [])
        #expect(nodes.filter { due($0, made, at: 1001) } == [nodes[0]])
        let later = (1000...1260).map { time in nodes.filter { due($0, made, at: TimeInterval(time)) }.count }
        #expect(later == later.sorted() && later.last == nodes.count && Set(later).count > 5)
    }

    /// The broker's clock was ahead by a year when it arrived, or its timestamp is forged.
    @Test(arguments: [SnapshotInfo.State.complete, .unfinished])
    func p204ASnapshotOfTheFutureHoldsUpTheNextNoLongerThanOneOfNow(state: SnapshotInfo.State) {
        let old = snapshot(nodes[0], at: -5000)
        let future = snapshot(nodes[1], at: 365 * 86_400, state: state)
        var arrivals = SnapshotArrivals()
        #expect(arrivals.corrected([future, old], at: present(0)).map(\.arrived) == [begin, old.arrived])
        let later = begin.addingTimeInterval(2000)
        let corrected = arrivals.corrected([future, old], at: present(2000))
        #expect(nodes.allSatisfy { due($0, corrected, at: 2000) })
        let others = nodes.filter { $0 != nodes[1] }
        #expect(others.allSatisfy { !due($0, [future, old], at: 2000) }, "without the correction")
        // A request that arrives after the snapshot was seen is still open.
        let answer = election(nodes[2]).answer(
            request: begin.addingTimeInterval(1900), last: nil, corrected, .init(positions: [0: 200]), now: later)
        #expect(answer == .make)
        // The snapshot that is made then is the newest.
        let next = snapshot(nodes[2], at: 2010)
        let after = arrivals.corrected([future, next, old], at: present(2020))
        #expect(after.map(\.id) == [next.id, future.id, old.id])
    }

    @Test func snapshotsThatAreGoneAreForgotten() {
        let future = snapshot(nodes[1], at: 365 * 86_400)
        var arrivals = SnapshotArrivals()
        _ = arrivals.corrected([future], at: present(0))
        #expect(arrivals.corrected([], at: present(0)).isEmpty)
        let later = begin.addingTimeInterval(10)
        #expect(arrivals.corrected([future], at: present(10)).map(\.arrived) == [later])
    }

    @Test func withoutASnapshotEachNodeWaitsForAnotherTime() {
        #expect(nodes.filter { due($0, [], at: 10) } == [])
        #expect(nodes.filter { due($0, [], at: 61) }.count == nodes.count)
        #expect(Set((10...61).map { time in nodes.filter { due($0, [], at: TimeInterval(time)) }.count }).count > 5)
    }

    @Test func nodesWaitForAnUnfinishedSnapshotUntilItsMakerIsGone() {
        let made = [snapshot(nodes[1], at: 1500, state: .unfinished), snapshot(nodes[0], at: 0)]
        #expect(!due(nodes[0], made, at: 1600))
        #expect(due(nodes[0], made, at: 1801))
        #expect(due(nodes[1], made, at: 1600))
    }

    @Test func aNodeWithoutNewMessagesOrWithGapsMakesNoSnapshot() {
        let made = [snapshot(nodes[0], at: 0)]
        #expect(!due(nodes[0], made, at: 5000, read: 109))
        #expect(due(nodes[0], made, at: 5000, read: 110))
        let now = begin.addingTimeInterval(1400)
        let election = election(nodes[0])
        #expect(election.isDue(made, .init(positions: [0: 200]), now: now))
        #expect(!election.isDue(made, .init(positions: [0: 200], hasGaps: true), now: now))
        #expect(election.isDue(made, .init(positions: [0: 200], hasGaps: true), now: now.addingTimeInterval(200)))
        #expect(!election.isDue(made, .init(positions: [0: 200], isWaiting: true), now: now))
        var never = SnapshotConfiguration()
        never.interval = .zero
        #expect(
            !SnapshotElection(node: nodes[0], configuration: never, since: begin).isDue(
                made, .init(positions: [0: 2000]), now: .distantFuture))
    }

    /// The offsets of the topic have begun again, and those of the snapshot are those of the former topic.
    @Test func aSnapshotOfAFormerTopicDoesNotCoverTheNewOne() {
        let made = [snapshot(nodes[0], at: 0)]
        let now = begin.addingTimeInterval(5000)
        func isDue(_ next: Int64, end: Int64?) -> Bool {
            var standing = SnapshotElection.Standing(positions: [0: next])
            if let end { standing.ends[0] = end }
            return election(nodes[0]).isDue(made, standing, now: now)
        }
        #expect(isDue(10, end: 10))
        #expect(isDue(10, end: 99))
        #expect(!isDue(9, end: 9))
        // This node has yet to read what the snapshot covers.
        #expect(!isDue(10, end: 100))
        #expect(!isDue(10, end: nil))
        // The end was last seen a while ago.
        #expect(!isDue(109, end: 10))
        #expect(isDue(110, end: 10))
    }

    private func answer(
        _ node: NodeID, _ snapshots: [SnapshotInfo] = [], after time: TimeInterval, last: TimeInterval? = nil,
        _ standing: SnapshotElection.Standing = .init(positions: [0: 1])
    ) -> SnapshotElection.Answer {
        election(node).answer(
            request: begin, last: last.map { begin.addingTimeInterval($0) }, snapshots, standing,
            now: begin.addingTimeInterval(time))
    }

    @Test func nodesAnswerARequestOneByOneUntilThereIsASnapshot() {
        let made = (0...20).map { time in nodes.filter { answer($0, after: TimeInterval(time)) == .make }.count }
        #expect(made == made.sorted() && made.last == nodes.count && Set(made).count > 5)
        #expect(nodes.allSatisfy { answer($0, [snapshot(nodes[0], at: 5)], after: 30) == .drop })
        // A snapshot from before the request doesn't answer it.
        #expect(nodes.allSatisfy { answer($0, [snapshot(nodes[0], at: -5)], after: 30) == .make })
        let begun = [snapshot(nodes[1], at: 5, state: .unfinished)]
        #expect(answer(nodes[0], begun, after: 30) == .wait && answer(nodes[0], begun, after: 310) == .make)
    }

    @Test func aNodeThatCannotHelpOrHasJustHelpedDropsTheRequest() {
        #expect(answer(nodes[0], after: 30, .init(positions: [0: 1], hasGaps: true)) == .drop)
        #expect(answer(nodes[0], after: 30, .init(positions: [0: 1], isWaiting: true)) == .drop)
        #expect(answer(nodes[0], after: 30, last: -100) == .drop)
        #expect(answer(nodes[0], after: 30, last: -600) == .make)
    }

    /// The topic has few messages, far fewer than a snapshot is otherwise made for, and has dropped the first.
    @Test func p169ANodeThatWasAwayTooLongGetsASnapshotMade() throws {
        let lab = try SnapshotLab(partitions: 1)
        let clock = TestClock()
        let (a, b) = (try lab.node("a", clock: clock), try lab.node("b"))
        try a.write("INSERT INTO setting VALUES ('old', 1)")
        try exchange([a])
        try lab.prune()
        try a.write("INSERT INTO setting VALUES ('new', 1)")
        try exchange([a])
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting") == ["new"])
        let checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
        let keeper = SnapshotKeeper(engine: a.engine, snapshots: try #require(a.snapshots), topic: "t")
        let asked = AntiEntropy(engine: a.engine, bus: checks, topic: "t", snapshotWanted: { keeper.want() })
        let asking = AntiEntropy(engine: b.engine, bus: checks, topic: "t")
        _ = try asked.connect()
        #expect(asking.step(timeout: .zero))
        #expect(asked.step(timeout: .zero))
        clock.pass(.seconds(20))
        #expect(try keeper.step()?.isComplete == true)
        #expect(try keeper.step() == nil)
        try b.restart()
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["new", "old"])
        // A node that doesn't wait for a snapshot requests none.
        let count = try messages(checks).count
        #expect(asking.step(timeout: .zero))
        try AntiEntropy(engine: b.engine, bus: checks, topic: "t").requestSnapshot()
        #expect(try messages(checks).count == count)
    }

    /// A node that has loaded the first part of a snapshot that another one made.
    private func halfLoaded(_ lab: SnapshotLab, by maker: TestNode, prunes: Bool = true) throws -> TestNode {
        for number in 1...8 { try maker.write("INSERT INTO setting VALUES ('\(number)', 1)") }
        try exchange([maker])
        try maker.makeSnapshot()
        if prunes { try lab.prune() }
        let node = try lab.node("b")
        let progress = try #require(try node.snapshots?.load(partitionCount: 1) { _ in false })
        #expect(!progress.isFinished)
        return node
    }

    private func requests(_ checks: InMemoryBus) throws -> Int {
        try messages(checks).count { try AntiEntropyFormat.decode($0).wire.wantsSnapshot }
    }

    @Test func p200ANodeWhoseHalfLoadedSnapshotIsGoneRequestsAnother() throws {
        let lab = try SnapshotLab(partitions: 1)
        defer { withExtendedLifetime(lab) {} }
        let a = try lab.node("a")
        let b = try halfLoaded(lab, by: a)
        let checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
        // It goes on with the one that it has begun, as long as that is there.
        #expect(AntiEntropy(engine: b.engine, bus: checks, topic: "t").step(timeout: .zero))
        #expect(try requests(checks) == 0)
        lab.snapshots.wipe()
        try b.restart()
        try b.consume()
        #expect(try !WantedOffsets.load(b.engine.session).isEmpty)
        #expect(AntiEntropy(engine: b.engine, bus: checks, topic: "t").step(timeout: .zero))
        #expect(try requests(checks) == 1)
        try a.restart()
        try a.makeSnapshot()
        try b.consume()
        try expectSame([a, b])
        #expect(AntiEntropy(engine: b.engine, bus: checks, topic: "t").step(timeout: .zero))
        #expect(try requests(checks) == 1)
    }

    /// The topic has all messages, and somebody began to load a snapshot by hand.
    @Test func p200ANodeThatMissesOnlyTheRestOfASnapshotRequestsAnother() throws {
        let lab = try SnapshotLab(partitions: 1)
        defer { withExtendedLifetime(lab) {} }
        let a = try lab.node("a")
        let b = try halfLoaded(lab, by: a, prunes: false)
        lab.snapshots.wipe()
        try b.restart()
        try b.consume()
        #expect(try WantedOffsets.load(b.engine.session).isEmpty)
        let checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
        #expect(AntiEntropy(engine: b.engine, bus: checks, topic: "t").step(timeout: .zero))
        #expect(try requests(checks) == 1)
        try a.restart()
        try a.makeSnapshot()
        try b.consume()
        try expectSame([a, b])
    }

    @Test func p200ANodeWithAHalfLoadedSnapshotConfirmsADelivery() throws {
        let lab = try SnapshotLab(partitions: 1)
        defer { withExtendedLifetime(lab) {} }
        let b = try halfLoaded(lab, by: lab.node("c"))
        let a = try lab.node("a")
        let bus = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
        let asking = AntiEntropy(engine: a.engine, bus: bus, topic: "t")
        let asked = AntiEntropy(engine: b.engine, bus: bus, topic: "t")
        for antiEntropy in [asking, asked] { #expect(antiEntropy.step(timeout: .zero)) }
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        #expect(try b.engine.apply(messages(lab.bus), topic: "t").applied == 1)
        var delivery = try Delivery(a.store, to: .nodes(["b"]))
        #expect(try delivery.missing(a.store)?.count == 1)
        for antiEntropy in [asking, asked, asking] { #expect(antiEntropy.step(timeout: .zero)) }
        #expect(try delivery.missing(a.store) == [])
    }

    /// A keeper that makes a snapshot every 100 s, and no more often than after five transactions.
    private func keeper(of node: TestNode, _ lab: SnapshotLab) -> (SnapshotTopic, SnapshotKeeper) {
        var configuration = SnapshotConfiguration()
        configuration.interval = .seconds(100)
        configuration.minTransactions = 5
        let topic = SnapshotTopic(engine: node.engine, bus: lab.snapshots, topic: "t", configuration: configuration)
        return (topic, SnapshotKeeper(engine: node.engine, snapshots: topic, topic: "t"))
    }

    @Test func aKeeperMakesOneSnapshotWhenItIsDue() throws {
        let lab = try SnapshotLab()
        let clock = TestClock()
        let a = try lab.node("a", clock: clock)
        for number in 0..<5 { try a.write("INSERT INTO setting VALUES ('\(number)', 1)") }
        try exchange([a])
        let (topic, keeper) = keeper(of: a, lab)
        #expect(try keeper.step() == nil)
        clock.pass(.seconds(60))
        #expect(try keeper.step()?.isComplete == true)
        #expect(try keeper.step() == nil)
        clock.pass(.seconds(1000))
        // No messages have arrived since.
        #expect(try keeper.step() == nil)
        for number in 5..<10 { try a.write("INSERT INTO setting VALUES ('\(number)', 1)") }
        try exchange([a])
        #expect(try keeper.step()?.isComplete == true)
        #expect(try topic.list().count == 2)
    }

    /// Either another node waits for a snapshot of this topic, or the next one is due.
    @Test(arguments: [false, true])
    func snapshotsThatWereMirroredFromAnotherTopicDoNotReplaceOnesOfThisTopic(isRequested: Bool) throws {
        let lab = try SnapshotLab(partitions: 1)
        defer { withExtendedLifetime(lab) {} }
        let clock = TestClock()
        let a = try lab.node("a", clock: clock)
        let other = try TestNode(
            "other", bus: InMemoryBus(topic: "u"), snapshots: lab.snapshots, directory: lab.directory,
            schema: lab.schema)
        for number in 0..<5 { try a.write("INSERT INTO setting VALUES ('\(number)', 1)") }
        try exchange([a])
        let (_, keeper) = keeper(of: a, lab)
        if isRequested {
            keeper.want()
            clock.pass(.seconds(20))
        } else {
            clock.pass(.seconds(60))
        }
        // The mirrored snapshot arrives after the request, and is new.
        try other.write("INSERT INTO trip(name) VALUES ('elsewhere')")
        try exchange([other])
        try other.makeSnapshot()
        #expect(try keeper.step()?.maker == a.engine.node)
        #expect(try keeper.step() == nil)
    }

    @Test func aRequestedSnapshotThatFailsIsMadeAtTheNextStep() throws {
        let lab = try SnapshotLab(partitions: 1)
        let clock = TestClock()
        let a = try lab.node("a", snapshots: FaultyBus(lab.snapshots, refusals: 1), clock: clock)
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a])
        let keeper = SnapshotKeeper(engine: a.engine, snapshots: try #require(a.snapshots), topic: "t")
        keeper.want()
        clock.pass(.seconds(20))
        #expect(throws: BusError.self) { try keeper.step() }
        #expect(try keeper.step()?.isComplete == true)
        #expect(try keeper.step() == nil)
    }

    /// A node that still waits asks again.
    @Test func aRequestedSnapshotThatFailsForTenMinutesIsGivenUp() throws {
        let lab = try SnapshotLab(partitions: 1)
        let clock = TestClock()
        let a = try lab.node("a", snapshots: FaultyBus(lab.snapshots, refusals: 2), clock: clock)
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a])
        let keeper = SnapshotKeeper(engine: a.engine, snapshots: try #require(a.snapshots), topic: "t")
        keeper.want()
        for time in [Duration.seconds(20), .seconds(581)] {
            clock.pass(time)
            #expect(throws: BusError.self) { try keeper.step() }
        }
        #expect(try keeper.step() == nil)
        keeper.want()
        clock.pass(.seconds(20))
        #expect(try keeper.step()?.isComplete == true)
    }

    /// An agent has its keeper before it compares the store with the topic, which may fork it.
    @Test func aKeeperOfAForkedStoreKnowsItsOwnSnapshots() throws {
        let lab = try SnapshotLab(partitions: 1)
        defer { withExtendedLifetime(lab) {} }
        let clock = TestClock()
        let a = try TestNode(
            "a", bus: lab.bus, snapshots: lab.snapshots, directory: lab.directory, schema: lab.schema, clock: clock,
            security: MessageSecurity(keys: nil) { $0.origins = [UUID(): []] })
        var configuration = SnapshotConfiguration()
        configuration.interval = .seconds(100)
        configuration.minTransactions = 1
        let topic = SnapshotTopic(engine: a.engine, bus: lab.snapshots, topic: "t", configuration: configuration)
        let keeper = SnapshotKeeper(engine: a.engine, snapshots: topic, topic: "t")
        try a.engine.fork()
        a.publisher.rewind(to: 0)
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a])
        clock.pass(.seconds(60))
        #expect(try keeper.step()?.maker == a.engine.node)
        #expect(try keeper.step() == nil)
        #expect(try topic.list().map(\.isComplete) == [true])
    }
}
