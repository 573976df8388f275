import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What a node keeps local, what it takes from others, and what a change of these filters does.
@Suite(.timeLimit(.minutes(5))) struct FilterTests {
    static let schema = """
        CREATE TABLE note(
          id INTEGER PRIMARY KEY, text TEXT, draft TEXT DEFAULT 'empty', shared INTEGER NOT NULL DEFAULT 0,
          tenant INTEGER);
        CREATE TABLE stop(id INTEGER PRIMARY KEY, note INTEGER REFERENCES note(id), place TEXT);
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value, shared INTEGER);
        CREATE TABLE cache(key TEXT PRIMARY KEY NOT NULL, value);
        """
    let lab: SnapshotLab

    init() throws { lab = try SnapshotLab(Self.schema) }

    private func filters(_ change: (inout SyncFilters) -> Void) -> SyncFilters {
        var filters = SyncFilters()
        change(&filters)
        return filters
    }

    private func node(_ name: String, _ change: (inout SyncFilters) -> Void = { _ in }) throws -> TestNode {
        let filters = filters(change)
        return try lab.node(name) { $0.filters = filters }
    }

    private func restart(_ node: TestNode, _ change: (inout SyncFilters) -> Void = { _ in }) throws {
        let filters = filters(change)
        try node.restart { $0.filters = filters }
    }

    /// True if any message, of a transaction or a snapshot, contains the text.
    private func isPublished(_ text: String) throws -> Bool {
        let sent = try messages(lab.bus) + messages(lab.snapshots)
        return sent.contains { Data($0.payload).range(of: Data(text.utf8)) != nil }
    }

    private func expectAgreement(_ nodes: [TestNode], _ place: SourceLocation = #_sourceLocation) throws {
        let digests = try nodes.map { try StoreDigest.compute($0.store).digest }
        #expect(Set(digests).count == 1, sourceLocation: place)
        let comparison = try StoreComparison.compare(nodes.map(\.path))
        #expect(
            comparison.tables.allSatisfy { $0.divergentCount == 0 && $0.behindCount == 0 },
            "\(comparison.differences)", sourceLocation: place)
    }

    // MARK: Ignored tables

    @Test func ignoredTablesAreNeitherPublishedNorApplied() throws {
        let a = try node("a") { $0.ignoredTables = ["Cache"] }
        let b = try node("b")
        try a.write("INSERT INTO cache VALUES ('a', 'of a'); INSERT INTO setting VALUES ('s', 1, 1)")
        try b.write("INSERT INTO cache VALUES ('b', 'of b')")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                cache key='a' value='of a'
                setting key='s' value=1 shared=1
                """)
        try expectState(
            b,
            is: """
                cache key='b' value='of b'
                setting key='s' value=1 shared=1
                """)
        #expect(try !isPublished("of a"))
        let status = try SyncStatus.read(a.store)
        #expect(status.filteredCount == 1 && status.parkedCount == 0)
        #expect(try a.store.parked(includingDeleted: true).map(\.reason) == [.filtered])

        try restart(a)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                cache key='a' value='of a'
                cache key='b' value='of b'
                setting key='s' value=1 shared=1
                """)
        #expect(try SyncStatus.read(a.store).filteredCount == 0)
        try expectAgreement([a, b])
    }

    @Test func changesMadeWhileATableWasIgnoredAreExchangedLater() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO cache VALUES ('kept', 1), ('changed', 1), ('deleted', 1), ('theirs', 1), ('again', 1)")
        try exchange([a, b])
        try restart(a) { $0.ignoredTables = ["cache"] }
        try a.write(
            """
            UPDATE cache SET value = 2 WHERE key = 'changed'; DELETE FROM cache WHERE key IN ('deleted', 'again');
            INSERT INTO cache VALUES ('new', 2); INSERT INTO cache VALUES ('again', 2);
            INSERT INTO cache VALUES ('short', 2); DELETE FROM cache WHERE key = 'short'
            """)
        try b.write("UPDATE cache SET value = 3 WHERE key = 'theirs'")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                cache key='again' value=2
                cache key='changed' value=2
                cache key='kept' value=1
                cache key='new' value=2
                cache key='theirs' value=1
                """)
        try expectState(
            b,
            is: """
                cache key='again' value=1
                cache key='changed' value=1
                cache key='deleted' value=1
                cache key='kept' value=1
                cache key='theirs' value=3
                """)
        try restart(a)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                cache key='again' value=2
                cache key='changed' value=2
                cache key='kept' value=1
                cache key='new' value=2
                cache key='theirs' value=3
                """)
        try expectAgreement([a, b])
    }

    @Test func aFilterThatIsNotConfiguredStaysInForce() throws {
        let a = try node("a") { $0.ignoredTables = ["cache"] }
        try a.restart { $0.filters = nil }
        try a.write("INSERT INTO cache VALUES ('a', 'of a')")
        try a.publish()
        #expect(try !isPublished("of a"))
        #expect(try SyncStatus.read(a.store).filters.summary == "ignore cache")
    }

    // MARK: Publishing

    @Test(arguments: [false, true]) func aRowIsPublishedOnceItMeetsTheCondition(isForeign: Bool) throws {
        let a = try node("a") { $0.publish = ["note": "shared = 1", "setting": "shared"] }
        let b = try node("b")
        func write(_ sql: String) throws { try isForeign ? a.foreignWrite(sql) : a.write(sql) }
        try write("INSERT INTO note(id, text) VALUES (1, 'secret one'), (2, 'secret two')")
        try write("INSERT INTO setting VALUES ('k', 'secret three', 0)")
        try write("UPDATE note SET text = 'secret four' WHERE id = 1")
        try exchange([a, b])
        #expect(try !isPublished("secret"))
        #expect(try a.outboxCount() == 0)
        try expectState(b, is: "nothing")
        try expectAgreement([a, b])

        try write("UPDATE note SET shared = 1, text = 'open' WHERE id = 1")
        try write("UPDATE setting SET shared = 1, value = 'open'")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                note text='open' draft='empty' shared=1 tenant=NULL
                note text='secret two' draft='empty' shared=0 tenant=NULL
                setting key='k' value='open' shared=1
                """)
        try expectState(
            b,
            is: """
                note text='open' draft='empty' shared=1 tenant=NULL
                setting key='k' value='open' shared=1
                """)
        try expectAgreement([a, b])
        // A published row stays published: otherwise, the other nodes would never learn of its end.
        try write("UPDATE note SET shared = 0, text = 'still open' WHERE id = 1")
        try exchange([a, b])
        try expectState(
            b,
            is: """
                note text='still open' draft='empty' shared=0 tenant=NULL
                setting key='k' value='open' shared=1
                """)
        try write("DELETE FROM note")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value='open' shared=1")
        #expect(try !isPublished("secret"))
        try expectAgreement([a, b])
    }

    @Test func deletingAnUnpublishedRowPublishesNothing() throws {
        let a = try node("a") { $0.publish = ["setting": "shared"] }
        try a.write("INSERT INTO setting VALUES ('k', 1, 0)")
        try a.write("UPDATE setting SET key = 'l'")
        try a.write("DELETE FROM setting")
        try a.publish()
        #expect(try a.outboxCount() == 0)
        #expect(try a.tombstones().isEmpty)
    }

    @Test func aWiderConditionPublishesTheRowsThatNowMeetIt() throws {
        let a = try node("a") { $0.publish = ["note": "shared = 1"] }
        let b = try node("b")
        try a.write("INSERT INTO note(id, text, tenant) VALUES (1, 'one', 7), (2, 'two', 8)")
        try a.write("INSERT INTO stop VALUES (1, 1, 'of one'), (2, 2, 'of two')")
        try exchange([a, b])
        try expectState(
            b,
            is: """
                stop note=NULL place='of one'
                stop note=NULL place='of two'
                pending missingTarget stop note=->?
                pending missingTarget stop note=->?
                """)
        try restart(a) { $0.publish = ["note": "tenant = 7"] }
        try exchange([a, b])
        try expectState(
            b,
            is: """
                note text='one' draft='empty' shared=0 tenant=7
                stop note=->'one' place='of one'
                stop note=NULL place='of two'
                pending missingTarget stop note=->?
                """)
        try expectAgreement([a, b])
        try restart(a)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                note text='one' draft='empty' shared=0 tenant=7
                note text='two' draft='empty' shared=0 tenant=8
                stop note=->'one' place='of one'
                stop note=->'two' place='of two'
                """)
        try expectAgreement([a, b])
    }

    // MARK: Local columns

    @Test func localColumnsAreNotPublished() throws {
        let a = try node("a") { $0.localColumns = ["note": ["draft"]] }
        let b = try node("b") { $0.localColumns = ["Note": ["Draft"]] }
        try a.write("INSERT INTO note(id, text, draft) VALUES (1, 'one', 'secret one')")
        try exchange([a, b])
        try expectState(a, is: "note text='one' draft='secret one' shared=0 tenant=NULL")
        try expectState(b, is: "note text='one' draft='empty' shared=0 tenant=NULL")
        try b.write("UPDATE note SET draft = 'secret two'")
        try a.write("UPDATE note SET draft = 'secret three'")
        try a.publish()
        #expect(try a.outboxCount() == 1)
        try b.write("UPDATE note SET text = 'changed', draft = 'secret four'")
        try exchange([a, b])
        try expectState(a, is: "note text='changed' draft='secret three' shared=0 tenant=NULL")
        try expectState(b, is: "note text='changed' draft='secret four' shared=0 tenant=NULL")
        let topic = try #require(a.snapshots)
        _ = try topic.make()
        #expect(try !isPublished("secret"))
        try expectAgreement([a, b])

        // A node without the filter can't write to the column.
        let c = try node("c")
        try c.consume()
        try c.write("UPDATE note SET draft = 'of c', text = 'text of c'")
        try exchange([a, b, c])
        try expectState(a, is: "note text='text of c' draft='secret three' shared=0 tenant=NULL")
        try expectState(b, is: "note text='text of c' draft='secret four' shared=0 tenant=NULL")
        try expectState(c, is: "note text='text of c' draft='of c' shared=0 tenant=NULL")
        #expect(try SyncStatus.read(a.store).filteredCount == 1)
        try restart(a)
        try restart(b)
        try exchange([a, b, c])
        #expect(try SyncStatus.read(a.store).filteredCount == 0)
        #expect(try a.rows("SELECT draft FROM note") == b.rows("SELECT draft FROM note"))
        #expect(try a.rows("SELECT draft FROM note") == c.rows("SELECT draft FROM note"))
        #expect(try c.rows("SELECT draft FROM note") != ["empty"])
        try expectAgreement([a, b, c])
    }

    // MARK: Subscribing

    @Test func rowsOfOtherNodesAreInTheTableWhileTheyMeetTheCondition() throws {
        let a = try node("a")
        let b = try node("b") { $0.subscribe = ["note": "tenant = 7", "setting": "shared"] }
        try a.write(
            """
            INSERT INTO note(id, text, tenant) VALUES (1, 'one', 7), (2, 'two', 8);
            INSERT INTO stop VALUES (1, 1, 'of one'), (2, 2, 'of two');
            INSERT INTO setting VALUES ('k', 'old', 0)
            """)
        try exchange([a, b])
        try expectState(
            b,
            is: """
                note text='one' draft='empty' shared=0 tenant=7
                stop note=->'one' place='of one'
                stop note=NULL place='of two'
                pending missingTarget stop note=->?
                """)
        #expect(try SyncStatus.read(b.store).filteredCount == 2)
        try expectAgreement([a, b])

        try a.write("UPDATE note SET text = 'two and a half' WHERE id = 2; UPDATE setting SET value = 'new'")
        try exchange([a, b])
        try a.write("UPDATE note SET tenant = 15 - tenant; UPDATE setting SET shared = 1")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                note text='one' draft='empty' shared=0 tenant=8
                note text='two and a half' draft='empty' shared=0 tenant=7
                setting key='k' value='new' shared=1
                stop note=->'one' place='of one'
                stop note=->'two and a half' place='of two'
                """)
        try expectState(
            b,
            is: """
                note text='two and a half' draft='empty' shared=0 tenant=7
                setting key='k' value='new' shared=1
                stop note=->'two and a half' place='of two'
                stop note=NULL place='of one'
                pending missingTarget stop note=->?
                """)
        try expectAgreement([a, b])
        try a.write("DELETE FROM stop; DELETE FROM note; DELETE FROM setting")
        try exchange([a, b])
        try expectBoth(a, b, are: "nothing")
        #expect(try SyncStatus.read(b.store).filteredCount == 0)
        try expectAgreement([a, b])
    }

    @Test func changesThatWaitForARowLeaveWithIt() throws {
        let a = try node("a")
        let strict = Self.schema.replacing(
            "tenant INTEGER)", with: "tenant INTEGER, CHECK (text <> 'bad'), CHECK (shared < 5))")
        var filters = SyncFilters()
        filters.subscribe = ["note": "text <> 'bad'"]
        let b = try lab.node("b", schema: strict) { $0.filters = filters }
        try a.write("INSERT INTO note(id, text) VALUES (1, 'one')")
        try exchange([a, b])
        try a.write("UPDATE note SET text = 'bad'")
        try a.write("UPDATE note SET shared = 9")
        try exchange([a, b])
        #expect(try b.parked() == ["constraint"])
        try b.store.alter(
            sql: """
                CREATE TABLE copy(id INTEGER PRIMARY KEY, text TEXT, draft TEXT DEFAULT 'empty',
                  shared INTEGER NOT NULL DEFAULT 0, tenant INTEGER);
                INSERT INTO copy SELECT * FROM note; DROP TABLE note; ALTER TABLE copy RENAME TO note
                """)
        _ = try b.engine.retryParked()
        try expectState(b, is: "nothing")
        #expect(try b.parked() == ["filtered"])
        try a.write("UPDATE note SET text = 'good'")
        try exchange([a, b])
        try expectBoth(a, b, are: "note text='good' draft='empty' shared=9 tenant=NULL")
        try expectAgreement([a, b])
    }

    @Test func aRowThatASnapshotDoesNotMentionStaysInAnIgnoredTable() throws {
        let a = try node("a")
        try a.write("INSERT INTO cache VALUES ('k', 1); INSERT INTO setting VALUES ('k', 1, 1)")
        try a.publish()
        try restart(a) { $0.ignoredTables = ["cache"] }
        var header = WireSnapshotHeader()
        header.entities = ["cache", "setting"].map { name in
            var entity = WireSnapshotEntity()
            entity.name = name
            return entity
        }
        header.collected = HybridTime(milliseconds: SQLiteClock.milliseconds + 1).rawValue
        try a.engine.session.transaction { db, context in
            let rows = UnmentionedRows(db: db, context: context)
            try rows.begin(header, unseen: .none)
            try rows.finish(header)
        }
        try expectState(a, is: "cache key='k' value=1")
    }

    @Test func rowsThatThisNodeWroteStayInItsTables() throws {
        let a = try node("a")
        let b = try node("b") { $0.subscribe = ["note": "tenant = 7"] }
        try b.write("INSERT INTO note(id, text, tenant) VALUES (1, 'mine', 8)")
        try exchange([a, b])
        try a.write("UPDATE note SET text = 'changed by a'")
        try exchange([a, b])
        try expectBoth(a, b, are: "note text='changed by a' draft='empty' shared=0 tenant=8")
        try restart(b) { $0.subscribe = ["note": "tenant = 9"] }
        try expectState(b, is: "note text='changed by a' draft='empty' shared=0 tenant=8")
    }

    @Test func aNewConditionHidesRowsAndBringsThemBack() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO note(id, text, tenant) SELECT i, 'note ' || i, i % 2 FROM n
            """)
        try a.write("INSERT INTO stop SELECT id, id, 'stop' FROM note")
        try exchange([a, b])
        let token = try b.store.lastToken()
        try restart(b) { $0.subscribe = ["note": "tenant = 1"] }
        #expect(try b.rows("SELECT count(*), min(tenant) FROM note") == ["600|1"])
        #expect(try b.rows("SELECT count(*), count(note) FROM stop") == ["1200|600"])
        // Readers of the local history that exclude the sync author see nothing of it.
        let seen = try b.store.fetchHistory(HistoryQuery(after: token)).filter { $0.author != TransactionAuthor.sync }
        #expect(seen.isEmpty)
        try a.write("UPDATE note SET text = 'changed' WHERE id <= 10")
        try exchange([a, b])
        try expectAgreement([a, b])
        try restart(b)
        #expect(try b.rows("SELECT count(*) FROM note") == ["1200"])
        #expect(try b.rows("SELECT count(*), count(note) FROM stop") == ["1200|1200"])
        #expect(try b.rows("SELECT count(*) FROM note WHERE text = 'changed'") == ["10"])
        try expectAgreement([a, b])
    }

    // MARK: Snapshots and checks

    @Test func snapshotsIncludeFilteredRowsAndLackUnpublishedOnes() throws {
        let a = try node("a") { $0.publish = ["note": "shared"] }
        let b = try node("b") { $0.subscribe = ["note": "tenant = 7"] }
        try a.write(
            "INSERT INTO note(id, text, shared, tenant) VALUES (1, 'one', 1, 7), (2, 'two', 1, 8), (3, 'secret', 0, 7)")
        try a.write("INSERT INTO setting VALUES ('gone', 1, 1); DELETE FROM setting")
        try exchange([a, b])
        for maker in [a, b] {
            lab.snapshots.wipe()
            _ = try #require(maker.snapshots).make()
            try lab.prune()
            let c = try node("c of \(maker.name)")
            try c.consume()
            try expectState(
                c,
                is: """
                    note text='one' draft='empty' shared=1 tenant=7
                    note text='two' draft='empty' shared=1 tenant=8
                    """)
            try expectAgreement([b, c])
        }
        #expect(try !isPublished("secret"))
    }

    @Test func checksAgreeAcrossFiltersAndRevealNothing() throws {
        let lab = try AntiEntropyLab(Self.schema)
        let filters = filters {
            $0.publish = ["note": "shared", "setting": "shared"]
            $0.subscribe = ["note": "tenant = 7"]
            $0.ignoredTables = ["cache"]
        }
        let a = try lab.checked(lab.lab.node("a") { $0.filters = filters })
        let b = try lab.node("b")
        try a.node.write(
            """
            INSERT INTO note(id, text, shared, tenant) VALUES (1, 'one', 1, 7), (2, 'two', 0, 7);
            INSERT INTO cache VALUES ('k', 'secret'); INSERT INTO setting VALUES ('k', 'secret', 0)
            """)
        try b.node.write("INSERT INTO note(id, text, tenant) VALUES (8, 'eight', 8); INSERT INTO cache VALUES ('k', 1)")
        try exchange([a.node, b.node])
        for begin in [a, b] {
            _ = try begin.antiEntropy.begin()
            try talk([a, b])
        }
        #expect(try a.found().isEmpty)
        #expect(try b.found().isEmpty)
        let sent = try messages(lab.checks) + messages(lab.lab.bus)
        #expect(!sent.contains { Data($0.payload).range(of: Data("secret".utf8)) != nil })
    }

    @Test(arguments: [false, true]) func anUnpublishedRowGivesWayToAPublishedRowWithTheSameKey(isOlder: Bool) throws {
        let a = try node("a") { $0.publish = ["setting": "shared"] }
        let b = try node("b")
        func insertAtA() throws { try a.write("INSERT INTO setting VALUES ('k', 'secret', 0)") }
        if isOlder { try insertAtA() }
        try b.write("INSERT INTO setting VALUES ('k', 'of b', 1)")
        if !isOlder { try insertAtA() }
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value='of b' shared=1")
        #expect(try a.store.conflicts().map(\.value).contains(.text("secret")))
        try a.write("UPDATE setting SET value = 'of a'")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value='of a' shared=1")
        #expect(try !isPublished("secret"))
        try expectAgreement([a, b])
    }

    @Test func aNodeThatChangedRowsOfOthersInAnIgnoredTableMakesNoSnapshots() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO cache VALUES ('changed', 1), ('deleted', 1)")
        try exchange([a, b])
        try restart(a) { $0.ignoredTables = ["cache"] }
        let topic = try #require(a.snapshots)
        _ = try topic.make()
        try a.write("INSERT INTO cache VALUES ('mine', 1)")
        try a.publish()
        _ = try topic.make()
        #expect(try SnapshotElection.Standing(of: a.engine.session, topic: "t").isWaiting == false)
        for change in ["UPDATE cache SET value = 2 WHERE key = 'changed'", "DELETE FROM cache WHERE key = 'deleted'"] {
            try a.write(change)
            try a.publish()
            #expect(throws: StoreError.self) { try topic.make() }
            #expect(try SnapshotElection.Standing(of: a.engine.session, topic: "t").isWaiting)
            try restart(a)
            _ = try #require(a.snapshots).make()
            try restart(a) { $0.ignoredTables = ["cache"] }
        }
    }

    @Test func ignoredTablesAreNotCompared() throws {
        let lab = try AntiEntropyLab(Self.schema)
        let a = try lab.lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO cache VALUES ('k', 1)")
        try exchange([a, b.node])
        var filters = SyncFilters()
        filters.ignoredTables = ["cache"]
        try a.restart { $0.filters = filters }
        try a.write("UPDATE cache SET value = 2")
        try a.publish()
        let checked = try lab.checked(a)
        _ = try checked.antiEntropy.begin()
        try talk([checked, b])
        let sent = try messages(lab.checks)
        #expect(!sent.isEmpty && !sent.contains { Data($0.payload).range(of: Data("cache".utf8)) != nil })
    }

    // MARK: Invalid filters

    @Test(arguments: [
        ("note", "colour = 1", "no such column"), ("note", "random() > 0", "non-deterministic"),
        ("note", "EXISTS (SELECT 1 FROM note)", "subqueries"), ("note", "1); DROP TABLE note; --", "syntax error"),
        ("stop", "note = 1", "no such column"), ("note", "id = 1", "no such column"), ("note", "", "syntax error"),
        ("trip", "1", "not tracked"),
    ]) func anInvalidConditionIsRefused(table: String, condition: String, reason: String) throws {
        for isPublish in [true, false] {
            let error = try #require(throws: StoreError.self) {
                _ = try node("a\(isPublish)") {
                    if isPublish { $0.publish = [table: condition] } else { $0.subscribe = [table: condition] }
                }
            }
            #expect(error.code == .invalidArgument)
            #expect(error.description.contains(reason), "\(error)")
        }
    }

    @Test(arguments: [
        ("note", "nothing", "not a captured"), ("setting", "key", "part of a key"), ("note", "id", "not a captured"),
        ("trip", "name", "not tracked"),
    ]) func aColumnThatCannotBeLocalIsRefused(table: String, column: String, reason: String) throws {
        let error = try #require(throws: StoreError.self) { _ = try node("a") { $0.localColumns = [table: [column]] } }
        #expect(error.description.contains(reason), "\(error)")
    }

    @Test func aRefusedFilterLeavesTheFormerOneInForce() throws {
        let a = try node("a") { $0.publish = ["note": "shared"] }
        #expect(throws: StoreError.self) { try restart(a) { $0.publish = ["note": "shred"] } }
        #expect(try SyncStatus.read(a.store).filters.publish == ["note": "shared"])
    }

    @Test func aConditionWhoseColumnIsGonePublishesNothing() throws {
        let a = try node("a") { $0.publish = ["note": "shared"] }
        try a.store.alter(sql: "ALTER TABLE note DROP COLUMN shared")
        try a.write("INSERT INTO note(id, text) VALUES (1, 'secret')")
        #expect(!a.publisher.step())
        #expect(a.publisher.currentProgress.problem?.contains("shared") ?? false)
        #expect(try !isPublished("secret"))
    }

    // MARK: Crashes

    @Test func anInterruptedFilterChangeIsFinishedByTheNextStart() throws {
        let a = try node("a") { $0.publish = ["note": "shared"] }
        let b = try node("b")
        try a.write("INSERT INTO note(id, text) VALUES (1, 'one')")
        try a.publish()
        // The state after the first transaction of the change.
        try a.store.database.write { db in
            try SyncFilters.load(db).save(db, as: SyncMeta.formerFilters)
            try SyncFilters().save(db)
        }
        try restart(a)
        try exchange([a, b])
        try expectBoth(a, b, are: "note text='one' draft='empty' shared=0 tenant=NULL")
        try expectAgreement([a, b])
    }

    @Test(arguments: 0..<12) func nodesConvergeOnceTheirFiltersAreRemoved(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let nodes = try (0..<3).map { try node("n\($0)") }
        for _ in 0..<40 {
            let node = nodes[Int(random.next() % 3)]
            switch random.next() % 12 {
            case 0:
                let choice = random.next()
                try restart(node) { filters in
                    if choice & 1 != 0 { filters.ignoredTables = ["cache"] }
                    if choice & 2 != 0 { filters.publish = ["note": "shared", "setting": "shared OR value = 3"] }
                    if choice & 4 != 0 { filters.subscribe = ["note": "tenant > 1", "setting": "value <> 2"] }
                    if choice & 8 != 0 { filters.localColumns = ["note": ["draft"]] }
                }
            case 1: try exchange(nodes)
            case 2: try node.publish()
            case 3: try node.consume()
            default: try node.write(Self.randomWrite(&random))
            }
        }
        for node in nodes { try restart(node) }
        try exchange(nodes)
        try exchange(nodes)
        try expectAgreement(nodes)
        for table in ["note", "setting", "cache", "stop"] {
            let counts = try nodes.map { try $0.rows("SELECT count(*) FROM \(table)") }
            #expect(Set(counts).count == 1, "\(table) \(counts)")
        }
        for node in nodes { #expect(try SyncStatus.read(node.store).filteredCount == 0) }
    }

    private static func randomWrite(_ random: inout SplitMix) -> String {
        func number(_ bound: UInt64) -> UInt64 { random.next() % bound }
        let key = "'k\(number(5))'"
        switch number(10) {
        case 0, 1:
            return
                """
                INSERT INTO note(text, draft, shared, tenant) VALUES ('t\(number(99))', 'd', \(number(2)), \(number(4)))
                """
        case 2: return "UPDATE note SET shared = 1 - shared WHERE id % 3 = \(number(3))"
        case 3: return "UPDATE note SET tenant = \(number(4)), draft = 'd\(number(9))' WHERE id % 3 = \(number(3))"
        case 4: return "INSERT INTO stop(note, place) SELECT id, 'p' FROM note ORDER BY id LIMIT 1"
        case 5:
            return "INSERT OR REPLACE INTO setting VALUES (\(key), \(number(4)), \(number(2)))"
        case 6: return "UPDATE setting SET value = \(number(4)), shared = \(number(2)) WHERE key = \(key)"
        case 7: return "DELETE FROM setting WHERE key = \(key)"
        case 8: return "INSERT OR REPLACE INTO cache VALUES (\(key), \(number(9)))"
        default: return "DELETE FROM cache WHERE key = \(key)"
        }
    }
}
