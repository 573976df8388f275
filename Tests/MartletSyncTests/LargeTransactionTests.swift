import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Transactions that take several commits to enqueue (docs/decisions/0035).
@Suite struct LargeTransactionTests {
    let lab: Lab

    init() throws {
        lab = try Lab(
            Lab.trips + """
                CREATE TABLE tree(
                  name TEXT PRIMARY KEY, up TEXT REFERENCES tree(name) ON UPDATE CASCADE, note TEXT);
                """)
    }

    private static let slice = 7

    private func node(
        _ name: String, slices: Bool = true, configure: (inout SyncConfiguration) -> Void = { _ in }
    ) throws -> TestNode {
        try lab.node(name) {
            if slices { $0.enqueueLimits.changes = Self.slice }
            configure(&$0)
        }
    }

    private static let many = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
        INSERT INTO setting SELECT 'k' || i, i FROM n
        """

    /// The whole state of a node with the settings of ``many``.
    private func state(_ others: [String] = [], value: (Int) -> Int = { $0 }) -> String {
        (others + (1...100).map { "setting key='k\($0)' value=\(value($0))" }).sorted().joined(separator: "\n")
    }

    /// The log row up to which changes are stamped.
    private func stampedRow(_ node: TestNode) throws -> Int { Int(try node.stampedThrough()) }

    @Test func p56ACommitEnqueuesASliceOfALargeTransaction() throws {
        let a = try node("a")
        let b = try node("b")
        try a.foreignWrite(Self.many)
        var before = try stampedRow(a)
        var commits = 0
        try runUntilNothingMoves("enqueuing", limit: 1000) {
            a.publisher.step()
            let now = try stampedRow(a)
            // The mark that closes the transaction is a row of the log, too.
            #expect(now > before && now - before <= Self.slice + 1)
            before = now
            commits += 1
            #expect(try lab.messages().isEmpty == (a.outboxCount() == 0))
            return try a.outboxCount() == 0
        }
        #expect(commits == 15)
        try a.publish()
        #expect(try lab.messages().count == 1)
        try b.consume()
        try expectBoth(a, b, are: state())
        for key in [SyncMeta.partialReading, SyncMeta.partialParts] { #expect(try a.value(named: key) == nil) }
    }

    /// What is left is enqueued at the next start.
    @Test func anInterruptedSessionEnqueuesOnlyASlice() throws {
        let a = try node("a")
        let b = try node("b")
        try a.foreignWrite(Self.many)
        let before = try stampedRow(a)
        a.engine.session.interrupt()
        #expect(throws: CancellationError.self) { try a.engine.session.transaction { _, _ in } }
        let now = try stampedRow(a)
        #expect(now > before && now - before <= Self.slice + 1)
        try a.restart()
        try exchange([a, b])
        try expectBoth(a, b, are: state())
    }

    /// The engine finds the beginning of another program's transaction before it takes the write lock.
    @Test func p164ClosingALargeTransactionTakesTheLockForOneRow() throws {
        let a = try node("a")
        try a.write("INSERT INTO setting VALUES ('before', 1)")
        let first = try #require(try a.store.lastToken()).transaction + 1
        try a.foreignWrite(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO setting SELECT 'k' || i, i FROM n
            """
        )
        let queue = try DatabaseQueue(path: a.path)
        let meter = WorkMeter(queue)
        var steps = 0
        func closeTransaction(meanwhile: () throws -> Void) throws {
            try queue.writeWithoutTransaction { db in
                let statements = try ClosingStatements(db)
                try db.readTransaction { try statements.lookAhead() }
                let before = meter.countHere
                try meanwhile()
                try db.immediateTransaction {
                    _ = try TransactionCloser.close(db, mark: TransactionMark(), using: statements)
                }
                steps = meter.countHere - before
            }
        }
        try closeTransaction { try a.foreignWrite("INSERT INTO setting VALUES ('late', 1)") }
        #expect(steps < 10)
        // Another connection closes the transaction that was found, before the engine has the lock.
        try a.foreignWrite("INSERT INTO setting VALUES ('next', 1)")
        try closeTransaction {
            try a.write("INSERT INTO setting VALUES ('meanwhile', 1)")
            try a.foreignWrite("INSERT INTO setting VALUES ('after', 1)")
        }
        let marks = try a.rows("SELECT r FROM _martlet_log WHERE e = 0 AND r >= \(first) ORDER BY id")
        #expect(marks.map { Int64($0) } == [first, first + 20_002, first + 20_004, first + 20_006])
    }

    @Test func p56AMessageEnqueuedInSlicesEqualsOneEnqueuedAtOnce() throws {
        for encoding in WireEncoding.allCases {
            let whole = try Lab()
            let sliced = try Lab()
            let first = try whole.node("a") { $0.encoding = encoding }
            try first.foreignWrite(Self.many + "; UPDATE setting SET value = value + 1 WHERE value % 3 = 0")
            let file = sliced.directory.path("backup.sqlite")
            try first.backUp(to: file)
            let second = try TestNode("a", bus: sliced.bus, directory: sliced.directory, schema: "", copyOf: file) {
                $0.encoding = encoding
                $0.enqueueLimits.changes = Self.slice
            }
            try first.publish()
            try second.publish()
            let payloads = try (whole.messages().map(\.payload), sliced.messages().map(\.payload))
            #expect(payloads.0.count == 1)
            let areSame = payloads.0 == payloads.1
            #expect(areSame)
        }
    }

    @Test func aTransactionThatEndsWithItsSliceIsNotStoredInParts() throws {
        let a = try node("a")
        let rows = (1...Self.slice).map { "('k\($0)', \($0))" }
        try a.write("INSERT INTO setting VALUES \(rows.joined(separator: ", "))")
        a.publisher.step()
        #expect(try a.outboxCount() == 1)
        #expect(try a.outboxParts().isEmpty)
    }

    @Test(arguments: 0..<15) func p56ACrashBetweenSlicesLosesAndDuplicatesNothing(crash: Int) throws {
        let a = try node("a")
        let b = try node("b")
        try a.foreignWrite("INSERT INTO setting VALUES ('before', 1)")
        try a.publish()
        try a.foreignWrite(Self.many)
        for _ in 0..<crash { a.publisher.step() }
        try a.restart()
        // Another program writes in between.
        try a.foreignWrite("UPDATE setting SET value = value + 1000 WHERE key IN ('k1', 'k50', 'k100')")
        a.publisher.step()
        try a.restart()
        try a.publish()
        let report = try b.consume()
        // A message that was sent right before the crash is sent twice.
        #expect(report.applied == 3 && report.duplicates <= 1 && report.gaps.isEmpty)
        try expectBoth(
            a, b, are: state(["setting key='before' value=1"]) { [1, 50, 100].contains($0) ? $0 + 1000 : $0 })
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    @Test func p56RemoteChangesWaitUntilTheWholeTransactionIsStamped() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO setting VALUES ('k100', 'old')")
        try exchange([a, b])
        try b.write("UPDATE setting SET value = 'of b'")
        try b.publish()
        // Only its last change conflicts.
        try a.foreignWrite(Self.many.replacing("INSERT INTO", with: "INSERT OR REPLACE INTO"))
        a.publisher.step()
        #expect(try a.outboxCount() == 1)
        try a.consume()
        #expect(try a.outboxCount() == 2)
        try exchange([a, b])
        try expectBoth(a, b, are: state())
    }

    @Test func p56ChangesThatWaitForARowOfASliceAreAppliedAfterACrash() throws {
        for crashes in [false, true] {
            let lab = try Lab()
            let a = try lab.node("a")
            let b = try lab.node("b") { $0.enqueueLimits.changes = Self.slice }
            try a.write("INSERT INTO setting VALUES ('x', 1)")
            try exchange([a, b])
            // The update of a missing row is pending until the row arrives.
            try a.write("INSERT INTO setting VALUES ('k3', 'a'); DELETE FROM setting WHERE key = 'k3'")
            try b.foreignWrite("INSERT INTO setting VALUES ('k3', 'b')")
            try exchange([a, b])
            try b.foreignWrite("DELETE FROM setting WHERE key = 'k3'")
            try a.write("UPDATE setting SET value = 'late' WHERE key = 'k3'")
            try exchange([a, b])
            #expect(try b.parked() == ["deleted"])
            try b.foreignWrite(Self.many.replacing("SELECT 'k' || i, i", with: "SELECT 'k' || i, NULL"))
            b.publisher.step()
            #expect(try b.value(named: SyncMeta.unsettled) != nil)
            if crashes { try b.restart() }
            try exchange([a, b])
            #expect(try b.value(named: SyncMeta.unsettled) == nil)
            #expect(try b.parked().isEmpty)
            #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        }
    }

    @Test func p56ACascadeThatPrecedesItsRenameMaySpanSlices() throws {
        for crashes in [false, true] {
            let lab = try Lab(lab.schema)
            let a = try lab.node("a") { $0.enqueueLimits.changes = 1 }
            let b = try lab.node("b")
            try a.foreignWrite("INSERT INTO tree VALUES ('root', 'root', 'x'), ('leaf', 'root', 'y')")
            try exchange([a, b])
            try a.foreignWrite("UPDATE tree SET name = 'oak' WHERE name = 'root'", foreignKeys: true)
            for _ in 0..<10 {
                a.publisher.step()
                if crashes { try a.restart() }
            }
            try exchange([a, b])
            try expectBoth(
                a, b,
                are: """
                    tree name='leaf' up='oak' note='y'
                    tree name='oak' up='oak' note='x'
                    """)
            #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        }
    }

    @Test func p56AForkInTheMiddleOfATransactionKeepsItWhole() throws {
        let a = try node("a")
        let b = try node("b")
        try a.foreignWrite("INSERT INTO trip(name) VALUES ('Alps')")
        try exchange([a, b])
        try a.foreignWrite(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
            INSERT INTO stop(trip, place) SELECT 1, 'p' || i FROM n
            """)
        a.publisher.step()
        try a.engine.fork()
        try a.restart()
        try exchange([a, b])
        let stops = (1...40).map { "stop trip=->'Alps' place='p\($0)'" }.sorted()
        try expectBoth(a, b, are: (stops + ["trip name='Alps' budget=NULL"]).joined(separator: "\n"))
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.outboxParts() == [:])
    }

    private func formats(_ messages: [IncomingMessage]) -> [String?] {
        messages.map { $0.header(WireHeader.format).map { String(decoding: $0, as: UTF8.self) } }
    }

    /// The setting may change between two slices, and `martlet fork` does not know it.
    @Test(arguments: [WireEncoding.json, .protobuf], [false, true])
    func p234ATransactionInPartsKeepsTheEncodingThatItBeganWith(encoding: WireEncoding, forks: Bool) throws {
        let other: WireEncoding = encoding == .json ? .protobuf : .json
        let a = try node("a") { $0.encoding = encoding }
        let b = try node("b")
        try a.foreignWrite(Self.many)
        a.publisher.step()
        #expect(try a.outboxParts().values.reduce(0, +) == 1)
        try a.restart { $0.encoding = other }
        if forks {
            try a.engine.fork()
            try a.restart()
        }
        try exchange([a, b])
        try expectBoth(a, b, are: state())
        #expect(formats(try lab.messages()) == [encoding.rawValue])
        #expect(try lab.messages().map { WireEncoding(of: $0.payload) } == [encoding])
    }

    @Test func p234TheHeaderSaysHowAnEarlierTransactionIsEncoded() throws {
        let a = try node("a") { $0.encoding = .json }
        try a.write("INSERT INTO setting VALUES ('first', 1)")
        _ = try a.engine.apply([], topic: "none")
        #expect(try a.outboxCount() == 1)
        try a.restart { $0.encoding = .protobuf }
        try a.write("INSERT INTO setting VALUES ('second', 2)")
        try a.publish()
        #expect(formats(try lab.messages()) == ["json", "protobuf"])
        #expect(try lab.messages().map { WireEncoding(of: $0.payload) } == [.json, .protobuf])
    }

    @Test func p56PartsOfATransactionLeaveTheOutboxWithItsHistory() throws {
        let a = try node("a")
        let b = try node("b")
        try a.foreignWrite(Self.many)
        try exchange([a, b])
        #expect(try a.outboxParts().values.contains { $0 > 1 })
        try a.foreignWrite("INSERT INTO setting VALUES ('after', 1)")
        try exchange([a, b])
        try a.engine.retainHistory(age: .seconds(-10), sizeBytes: nil)
        #expect(try a.outboxCount() == 1)
        #expect(try a.outboxParts() == [:])
    }

    @Test func p56ATransactionInPartsIsSplitIntoTheSameMessagesAgain() throws {
        let a = try node("a") { $0.maxMessageBytes = 1000 }
        let b = try node("b")
        try a.foreignWrite(Self.many.replacing("'k' || i, i", with: "'k' || i, hex(zeroblob(20 + i))"))
        try a.publish()
        let sent = try lab.messages().map(\.payload)
        #expect(sent.count > 10)
        lab.bus.wipe()
        a.publisher.rewind(to: 0)
        try a.publish()
        let isSame = try lab.messages().map(\.payload) == sent
        #expect(isSame)
        try b.consume()
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    @Test func p56AStoreOfAnEarlierVersionEnqueuesInSlicesToo() throws {
        let a = try node("a")
        let b = try node("b")
        try a.foreignWrite(OldFormat.sql(sync: 10))
        try a.restart()
        try a.foreignWrite(Self.many)
        try exchange([a, b])
        #expect(try a.outboxParts().values.contains { $0 > 1 })
        try expectBoth(a, b, are: state())
    }

    /// The number of commits in the write-ahead log: the header of each commit's last page contains the file's size.
    private func commitCount(_ path: String) throws -> Int {
        let log = try Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
        return stride(from: 32, to: log.count, by: 4120).count(where: { frame in
            log[(frame + 4)..<(frame + 8)].contains { $0 != 0 }
        })
    }

    @Test func p56AnApplyingCommitEndsWhenItsTimeIsOver() throws {
        for (time, commits) in [(Duration.zero, 30), (.seconds(3600), 1)] {
            let lab = try Lab()
            let a = try lab.node("a")
            let b = try lab.node("b") { $0.applyTime = time }
            for number in 1...30 { try a.write("INSERT INTO setting VALUES ('k\(number)', \(number))") }
            try a.publish()
            let messages = try lab.messages()
            #expect(messages.count == 30)
            let before = try commitCount(b.path)
            #expect(try b.receive(messages).applied == 30)
            #expect(try commitCount(b.path) - before == commits)
            #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        }
    }

    @Test(arguments: [true, false]) func anApplyingCommitGoesOnWhileNobodyElseHasTheFileOpen(isAlone: Bool) throws {
        let a = try lab.node("a")
        for number in 1...30 { try a.write("INSERT INTO setting VALUES ('k\(number)', \(number))") }
        try a.publish()
        let messages = try lab.messages()
        let b = try TemporaryStore(Lab.trips)
        if isAlone { try b.store.close() }
        // Each look at the clock takes 10 ms.
        let start = ContinuousClock.now
        let elapsed = Mutex(Duration.zero)
        let engine = try SyncEngine(
            path: b.path,
            instant: {
                elapsed.withLock {
                    $0 += .milliseconds(10)
                    return start + $0
                }
            })
        defer { try? engine.close() }
        let before = try commitCount(b.path)
        #expect(try engine.apply(messages, topic: "t").applied == 30)
        // 20 messages in 200 ms, or 4 in 40 ms.
        #expect(try commitCount(b.path) - before == (isAlone ? 2 : 8))
    }

    @Test func p56AnyChunkMayCompleteItsTransaction() throws {
        let a = try node("a") { $0.maxMessageBytes = 1000 }
        try a.foreignWrite(Self.many.replacing("'k' || i, i", with: "'k' || i, hex(zeroblob(20 + i))"))
        try a.publish()
        let messages = try lab.messages()
        for (index, last) in [0, 1, messages.count - 2, messages.count - 1].enumerated() {
            let b = try lab.node("b\(index)") { $0.applyTime = index % 2 == 0 ? .zero : .seconds(3600) }
            let others = messages.indices.filter { $0 != last }.map { messages[$0] }
            #expect(try b.receive(others).chunks == others.count)
            #expect(try b.receive([messages[last]]).applied == 1)
            #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
            #expect(try b.chunks() == [])
        }
    }

    @Test func p56HistoryIsDeletedInParts() throws {
        let a = try node("a")
        let b = try node("b")
        for number in 1...5 { try a.write("INSERT INTO setting VALUES ('s\(number)', \(number))") }
        try a.foreignWrite(Self.many)
        for number in 6...9 { try a.write("INSERT INTO setting VALUES ('s\(number)', \(number))") }
        try exchange([a, b])
        let newest = try #require(try a.store.fetchHistory().last?.token)
        var deletions = 0
        var seen = try a.store.fetchHistory().count
        #expect(seen == 10)
        try runUntilNothingMoves("deleting history", limit: 1000) {
            let before = try a.logRowCount()
            let outcome = try a.store.writeOwnTables { try Pruner.prune($0, through: newest.transaction, limit: 20) }
            let after = try a.logRowCount()
            #expect(before - after == outcome.count && outcome.count <= 20)
            // Readers see a transaction as a whole, or not at all.
            let transactions = try a.store.fetchHistory()
            #expect(transactions.count <= seen)
            #expect(transactions.allSatisfy { [1, 100].contains($0.changes.count) })
            seen = transactions.count
            if outcome.hasMore { deletions += 1 }
            return outcome.hasMore
        }
        #expect(deletions > 5)
        #expect(try a.logRowCount() == 2)
        #expect(try a.store.audit().isClean)
        try a.write("INSERT INTO setting VALUES ('after', 1)")
        try exchange([a, b])
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    enum Order: CaseIterable {
        case targetsFirst, targetsLast, mixed
    }

    /// Each row refers to the next one. When each round of retries applied one of them, the 5000 rows took 12 million
    /// tries.
    @Test(.timeLimit(.minutes(5)), arguments: Order.allCases, ["", "NOT NULL"])
    func p132AChainOfRowsIsAppliedInAnyOrder(order: Order, constraint: String) throws {
        let lab = try Lab(
            """
            CREATE TABLE link(
              id TEXT PRIMARY KEY NOT NULL, next TEXT \(constraint) REFERENCES link(id) DEFERRABLE INITIALLY DEFERRED);
            CREATE INDEX link_next ON link(next);
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        let c = try lab.node("c") { $0.applyBatchTransactions = 1 }
        let count = 5000
        var places = Array(0..<count)
        var random = SplitMix(seed: 4)
        switch order {
        case .targetsFirst: places.reverse()
        case .targetsLast: break
        case .mixed: places.shuffle(using: &random)
        }
        let rows = places.map { "('k\($0)', 'k\(min($0 + 1, count - 1))')" }
        try a.foreignWrite("INSERT INTO link VALUES \(rows.joined(separator: ", "))")
        try a.publish()
        for node in [b, c] {
            try node.consume()
            #expect(try node.rows("SELECT count(*), count(next) FROM link") == ["\(count)|\(count)"])
            #expect(try node.pendingReferences() == [])
            #expect(try node.pendingRows() == [])
            #expect(try node.rows("SELECT * FROM link ORDER BY id") == a.rows("SELECT * FROM link ORDER BY id"))
        }
    }

    @Test func theAgentPausesInProportionToTheTimeItHeldTheLock() {
        var now = ContinuousClock.now
        var turns = WriterTurns()
        func hold(_ time: Duration) {
            turns.begin(at: now)
            now += time
            turns.end(at: now)
        }
        #expect(turns.pause(at: now) == .zero)
        hold(.milliseconds(20))
        #expect(turns.pause(at: now) == .zero)
        hold(.milliseconds(20))
        #expect(turns.pause(at: now) == .milliseconds(25))
        now += .milliseconds(10)
        #expect(turns.pause(at: now) == .milliseconds(15))
        now += .milliseconds(15)
        #expect(turns.pause(at: now) == .zero)
        for (held, rest) in [(51, 50), (100, 50), (101, 100), (5000, 100)] {
            hold(.milliseconds(held))
            #expect(turns.pause(at: now) == .milliseconds(rest))
            now += .milliseconds(rest)
            #expect(turns.pause(at: now) == .zero)
        }
        // An agent that holds the lock for a tenth of the time never pauses.
        for _ in 0..<1000 {
            hold(.milliseconds(1))
            now += .milliseconds(9)
            #expect(turns.pause(at: now) == .zero)
        }
    }

    @Test(arguments: [true, false]) func theAgentPausesOnlyForOthersWhoMayWrite(isAlone: Bool) {
        var now = ContinuousClock.now
        var turns = WriterTurns()
        var rests: [Duration] = []
        var timesAsked = 0
        for _ in 0..<10 {
            turns.wait(
                now: { now },
                unless: {
                    timesAsked += 1
                    return isAlone
                }, rest: { rests.append($0) })
            turns.begin(at: now)
            now += .milliseconds(20)
            turns.end(at: now)
        }
        // Somebody may have opened the file, so it asks again after each 30 ms.
        #expect(timesAsked == 4)
        #expect(rests == (isAlone ? [] : [Duration](repeating: .milliseconds(25), count: 4)))
    }
}
