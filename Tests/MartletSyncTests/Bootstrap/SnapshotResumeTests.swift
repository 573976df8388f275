import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Interrupted loads, and damaged snapshots.
@Suite struct SnapshotResumeTests {
    let lab: SnapshotLab
    let a: TestNode

    init() throws {
        lab = try SnapshotLab()
        a = try lab.node("a")
        for number in 1...8 {
            try a.write(
                """
                INSERT INTO trip(name) VALUES ('\(number)');
                INSERT INTO stop(trip) VALUES (last_insert_rowid());
                INSERT INTO setting VALUES ('\(number)', \(number))
                """
            )
        }
        try a.write("DELETE FROM trip WHERE name = '3'; UPDATE trip SET budget = 1 WHERE name = '4'")
        try exchange([a])
    }

    @Test func anInterruptedLoadResumesAtEveryBatchWhereItStopped() throws {
        try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        var seen: [Int] = []
        for _ in 0..<100 {
            // This is like a crash of the process after each part.
            try b.restart()
            let progress = try #require(try b.snapshots?.load(partitionCount: 2) { _ in false })
            seen.append(progress.messages)
            if progress.isFinished { break }
        }
        #expect(seen.count > 8)
        #expect(seen == seen.sorted() && Set(seen).count == seen.count)
        try b.consume()
        try expectSame([a, b])
        #expect(try b.engine.session.read(SnapshotPlace.all).finished.count == 1)
    }

    @Test func p199RepeatedDisconnectsDoNotStopTheSearchForSnapshots() throws {
        let made = try a.makeSnapshot()
        let bus = BrittleBus(lab.snapshots)
        bus.pollsOfEach.withLock { $0 = 1 }
        let topic = SnapshotTopic(engine: a.engine, bus: bus, topic: "t")
        var failures = 0
        while failures < 100 {
            do {
                let found = try topic.list()
                #expect(found.map(\.id) == [made.id])
                break
            } catch is BusError {
                failures += 1
            }
        }
        #expect(failures > 3 && failures < 100)
    }

    /// The topic for snapshots is recreated, and soon has as many messages as the former one, or more: its end doesn't
    /// tell the two apart.
    @Test(arguments: [false, true]) func aRecreatedSnapshotTopicIsReadFromItsBeginning(hasMore: Bool) throws {
        let lab = try SnapshotLab(partitions: 1)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO trip(name) VALUES ('1'); INSERT INTO setting VALUES ('1', 1), ('2', 2)")
        try exchange([a])
        let former = try a.makeSnapshot()
        let ofB = try #require(b.snapshots)
        #expect(try ofB.list().map(\.id) == [former.id])
        lab.snapshots.wipe()
        if hasMore {
            try a.write("INSERT INTO setting VALUES ('3', 3), ('4', 4), ('5', 5), ('6', 6), ('7', 7), ('8', 8)")
            try exchange([a])
        }
        let made = try a.makeSnapshot()
        #expect(made.isComplete)
        #expect(hasMore ? made.messageCount > former.messageCount : made.messageCount == former.messageCount)
        for snapshots in [try #require(a.snapshots), ofB] {
            #expect(try snapshots.list().map(\.id) == [made.id])
            #expect(try snapshots.list().allSatisfy(\.isComplete))
        }
        try lab.prune()
        try b.consume()
        try expectSame([a, b])
    }

    @Test func repeatedDisconnectsDoNotStopALoad() throws {
        try a.makeSnapshot()
        try lab.prune()
        let flaky = CutBus(lab.snapshots)
        let b = try lab.node("b", snapshots: flaky)
        var interruptions = 0
        for cut in 0..<200 {
            flaky.pollsLeft.withLock { $0 = 1 + cut / 4 }
            if b.consumer.step(timeout: .milliseconds(1)) != nil { break }
            // The link may also be cut between the end of the load and that of the step.
            if try b.engine.session.read(SnapshotPlace.all).finished.isEmpty { interruptions += 1 }
        }
        #expect(interruptions > 4)
        flaky.pollsLeft.withLock { $0 = .max }
        try b.consume()
        try expectSame([a, b])
    }

    /// A node that stops must not read the whole topic before, or wait for a broker that doesn't answer.
    @Test func aStopEndsASearchForSnapshots() throws {
        try a.makeSnapshot()
        let topic = SnapshotTopic(engine: a.engine, bus: lab.snapshots, topic: "t")
        topic.stopSignal.stop()
        #expect(throws: CancellationError.self) { try topic.list() }
        #expect(try SnapshotTopic.list(on: lab.snapshots).count == 1)
    }

    @Test func aStopEndsALoadThatContinuesAtTheNextStart() throws {
        try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        let snapshots = try #require(b.snapshots)
        #expect(throws: CancellationError.self) {
            try snapshots.load(partitionCount: 2) { _ in
                snapshots.stopSignal.stop()
                return true
            }
        }
        let place = try b.engine.session.read(SnapshotPlace.all)
        #expect(place.finished.isEmpty && place.begun != nil)
        try b.restart()
        try b.consume()
        try expectSame([a, b])
        #expect(try b.engine.session.read(SnapshotPlace.all).finished.count == 1)
    }

    @Test func aConsumerThatIsStoppedWhileItLooksForASnapshotReportsNoProblem() throws {
        try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        try #require(b.snapshots).stopSignal.stop()
        // As long as only the search is stopped, the consumer backs off.
        #expect(b.consumer.step(timeout: .zero) == nil)
        #expect(b.consumer.currentProgress.problem != nil)
        try b.restart()
        try #require(b.snapshots).stopSignal.stop()
        b.consumer.stopSignal.stop()
        #expect(b.consumer.step(timeout: .zero) == nil)
        #expect(b.consumer.currentProgress.problem == nil)
    }

    @Test func anEmptyStoreReadsTheTopicIfNothingWasDropped() throws {
        try a.makeSnapshot()
        let b = try lab.node("b")
        try b.consume()
        try expectSame([a, b])
        let loaded = try b.engine.session.read(SnapshotPlace.all)
        #expect(loaded.finished.isEmpty && loaded.begun == nil)
    }

    @Test func withoutASnapshotANodeReadsTheRestAndWaitsForTheNextSnapshot() throws {
        try lab.prune()
        try a.write("INSERT INTO setting VALUES ('rest', 1)")
        try a.publish()
        let b = try lab.node("b")
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting") == ["rest"])
        #expect(try b.gaps().count == 1)
        let since = b.consumer.currentProgress.awaitsSnapshotSince
        #expect(since != nil)
        try b.restart()
        try b.consume()
        #expect(b.consumer.currentProgress.awaitsSnapshotSince == since)
        try a.makeSnapshot()
        try b.consume()
        try expectSame([a, b])
        #expect(b.consumer.currentProgress.awaitsSnapshotSince == nil)
        #expect(!b.consumer.currentProgress.hasUnfinishedSnapshot)
    }

    @Test func aSnapshotIsAwaitedForAWhileWhateverTheWallClockDoes() throws {
        try lab.prune()
        let clock = TestClock(SQLiteClock.milliseconds)
        let b = try lab.node("b", clock: clock)
        try b.consume()
        for hours in [1, -2] {
            clock.milliseconds += Int64(hours) * 3_600_000
            #expect(!b.consumer.currentProgress.hasCaughtUp(at: clock.instant))
        }
        // It was noted in the store by a clock that was an hour ahead.
        try b.restart()
        try b.consume()
        #expect(b.consumer.currentProgress.awaitsSnapshotSince != nil)
        #expect(!b.consumer.currentProgress.hasCaughtUp(at: clock.instant))
        clock.pass(.seconds(300))
        #expect(b.consumer.currentProgress.hasCaughtUp(at: clock.instant))
    }

    /// The wall clock was set since the wait began.
    @Test(arguments: [1, -1] as [Int64])
    func aLostConnectionNeitherEndsTheWaitForASnapshotNorBeginsItAgain(hours: Int64) throws {
        try lab.prune()
        let clock = TestClock(SQLiteClock.milliseconds)
        let b = try lab.node("b", clock: clock)
        try b.consume()
        clock.milliseconds += hours * 3_600_000
        clock.pass(.seconds(200))
        b.consumer.disconnect()
        try b.consume()
        #expect(b.consumer.currentProgress.awaitsSnapshotSince != nil)
        #expect(!b.consumer.currentProgress.hasCaughtUp(at: clock.instant))
        clock.pass(.seconds(100))
        #expect(b.consumer.currentProgress.hasCaughtUp(at: clock.instant))
    }

    @Test func aHalfLoadedSnapshotThatIsGoneIsVisible() throws {
        try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        #expect(try b.snapshots?.load(partitionCount: 2) { _ in false }?.isFinished == false)
        lab.snapshots.wipe()
        try b.restart()
        try b.consume()
        #expect(b.consumer.currentProgress.hasUnfinishedSnapshot)
        try a.restart()
        try a.makeSnapshot()
        try b.consume()
        #expect(!b.consumer.currentProgress.hasUnfinishedSnapshot)
        try expectSame([a, b])
    }

    // MARK: Damage

    private func expectRefusal(_ code: StoreError.Code, _ state: (SnapshotInfo.State) -> Bool) throws {
        let b = try lab.node("b")
        let snapshots = try #require(b.snapshots)
        let info = try #require(try snapshots.list().first)
        let isRight = state(info.state)
        #expect(isRight, "\(info.state)")
        let error = try #require(throws: StoreError.self) { try snapshots.load(info.id, partitionCount: 2) }
        #expect(error.code == code, "\(error)")
        #expect(!error.hint.isEmpty)
        #expect(try b.rows("SELECT count(*) FROM trip") == ["0"])
        // Without an explicit ID, the node loads none and reads the topic.
        #expect(try snapshots.load(partitionCount: 2) == nil)
    }

    @Test func aSnapshotWithoutItsEndIsRefused() throws {
        try a.makeSnapshot()
        try lab.rewrite { $0.filter { $0.text("martlet-count") == nil } }
        try expectRefusal(.corrupt) { $0 == .unfinished }
    }

    @Test(arguments: [0, 1, 4]) func aSnapshotWithAMissingPartIsRefused(number: Int) throws {
        try a.makeSnapshot()
        try lab.rewrite { $0.filter { $0.text("martlet-number") != "\(number)" } }
        try expectRefusal(.corrupt) { if case .damaged = $0 { true } else { false } }
    }

    @Test(arguments: [0, 2]) func aSnapshotWithAChangedByteIsRefused(number: Int) throws {
        try a.makeSnapshot()
        try lab.rewrite { messages in
            messages.map { message in
                var message = message
                if message.text("martlet-number") == "\(number)" { message.payload[message.payload.count / 2] ^= 1 }
                return message
            }
        }
        try expectRefusal(.corrupt) { if case .damaged = $0 { true } else { false } }
    }

    @Test func aSnapshotOfANewerFormatIsRefused() throws {
        try a.makeSnapshot()
        try lab.rewrite { messages in
            messages.map { message in
                var message = message
                // Field 1 is the format.
                if message.text("martlet-number") == "0" {
                    message.payload[1] = 9
                    message.headers.removeAll { $0.name == "martlet-crc32" }
                }
                return message
            }
        }
        try expectRefusal(.newerVersion) { if case .newerFormat = $0 { true } else { false } }
    }

    @Test func partsWithAnotherLengthThanTheEndStatesAreRefusedForAnOlderSnapshot() throws {
        let first = try a.makeSnapshot()
        let second = try a.makeSnapshot()
        // A valid part with other content replaced this part.
        try lab.rewrite { messages in
            let other = try #require(
                messages.first {
                    $0.text("martlet-snapshot") == first.id.uuidString && $0.text("martlet-number") == "2"
                })
            return messages.map { message in
                guard message.text("martlet-snapshot") == second.id.uuidString, message.text("martlet-number") == "3"
                else { return message }
                var changed = message
                changed.payload = other.payload
                changed.headers = message.headers.filter { $0.name != "martlet-crc32" }
                return changed
            }
        }
        try lab.prune()
        let b = try lab.node("b")
        let error = try #require(throws: StoreError.self) { try b.snapshots?.load(second.id, partitionCount: 2) }
        #expect(error.code == .corrupt)
        #expect(try b.engine.offsets(topic: "t") == [])
        try b.consume()
        #expect(try b.engine.session.read(SnapshotPlace.all).finished.count == 1)
        try expectSame([a, b])
    }

    /// The fuzzer of hostile messages found this: an attacker who wants to keep a node busy puts many snapshots that
    /// can't be loaded on the topic.
    @Test func p128ManySnapshotsThatCannotBeLoadedCostNoMoreThanTheirSize() throws {
        try a.makeSnapshot()
        let forged = 40
        try lab.rewrite { messages in
            messages
                + (0..<forged).flatMap { _ in
                    let id = UUID().uuidString
                    return messages.map { message in
                        var copy = message
                        copy.headers = message.headers.map {
                            $0.name == "martlet-snapshot" ? MessageHeader($0.name, id) : $0
                        }
                        return copy
                    }
                }
        }
        let count = try messages(lab.snapshots).count
        #expect(count > 2 * forged)
        let bus = CutBus(lab.snapshots)
        let b = try lab.node("b", snapshots: bus)
        let most = 6 * count
        bus.pollsLeft.withLock { $0 = most }
        #expect(try #require(b.snapshots).load(partitionCount: 2)?.isFinished == true)
        try b.consume()
        try expectSame([a, b])
    }

    @Test func aSnapshotFromTheFutureWaitsForTheClock() throws {
        try a.makeSnapshot()
        try lab.prune()
        let clock = TestClock(1_000_000)
        let b = try lab.node("b", clock: clock)
        try b.consume()
        #expect(try b.rows("SELECT count(*) FROM trip") == ["0"])
        clock.milliseconds = SQLiteClock.milliseconds
        try b.restart()
        try b.consume()
        try expectSame([a, b])
    }
}

/// A bus whose consumers lose their connection after some polls.
private final class CutBus: ForwardingBus {
    let inner: InMemoryBus
    let pollsLeft = Mutex(Int.max)

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeConsumer() throws(BusError) -> any BusConsumer { CutConsumer(try inner.makeConsumer(), self) }

    private final class CutConsumer: ForwardingConsumer {
        let inner: any BusConsumer
        let bus: CutBus

        init(_ inner: any BusConsumer, _ bus: CutBus) {
            self.inner = inner
            self.bus = bus
        }

        func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
            let isCut = bus.pollsLeft.withLock { left in
                left -= 1
                return left < 0
            }
            if isCut { throw BusError(.unreachable, "the link is cut", isRetriable: true) }
            // Few messages at a time, so that there are many polls.
            return try inner.poll(maxCount: 1, timeout: timeout)
        }
    }
}
