import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Which entries of the conflict journal the agent's retention deletes.
@Suite struct RetainedConflictsTests {
    private let lab: Lab
    private let a: TestNode
    private let b: TestNode
    private static let day: Int64 = 86_400_000

    init() throws {
        lab = try Lab()
        a = try lab.node("a")
        b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a, b])
    }

    /// Makes an entry in the journal of the second node.
    private func conflict(_ number: Int) throws {
        try b.write("UPDATE setting SET value = '\(number) of b' WHERE key = 'k'")
        try a.write("UPDATE setting SET value = '\(number) of a' WHERE key = 'k'")
        try a.publish()
        try b.consume()
    }

    /// Adds entries of this size to the journal of the second node.
    private func insert(_ count: Int, bytes: Int) throws {
        try b.write(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO _martlet_conflicts(entity, ident, kind, value, hlc, node, winner_hlc, winner_node, since)
            SELECT 1, x'00', 'attribute', zeroblob(\(bytes)), 0, 1, 0, 1, i FROM n
            """)
    }

    private func numbers() throws -> [Int64] { try b.store.conflicts().map(\.id) }

    @Test func conflictsThatAreOlderThanTheAgeAreDeleted() throws {
        func retain() throws { try b.engine.retainHistory(age: .milliseconds(30 * Self.day), sizeBytes: nil) }
        try conflict(1)
        b.clock.milliseconds += 20 * Self.day
        try conflict(2)
        try retain()
        #expect(try numbers() == [1, 2])
        b.clock.milliseconds += 15 * Self.day
        try retain()
        #expect(try numbers() == [2])
        b.clock.milliseconds += 90 * Self.day
        try retain()
        // Otherwise, the next conflict would get a number that somebody may have noted.
        #expect(try numbers() == [2])
        try conflict(3)
        try retain()
        #expect(try numbers() == [3])
    }

    /// Its clock was ahead for a while.
    @Test func aConflictOfTheFutureHoldsNoOthersBack() throws {
        func retain() throws { try b.engine.retainHistory(age: .milliseconds(30 * Self.day), sizeBytes: nil) }
        try conflict(1)
        b.clock.milliseconds += 4000 * Self.day
        try conflict(2)
        b.clock.milliseconds -= 3999 * Self.day
        try conflict(3)
        try retain()
        #expect(try numbers() == [1, 2, 3])
        b.clock.milliseconds += 31 * Self.day
        try conflict(4)
        try retain()
        #expect(try numbers() == [4])
    }

    @Test func theOldestConflictsBeyondTheSizeAreDeleted() throws {
        try insert(3000, bytes: 1000)
        // Each takes 1,065 bytes.
        func retain() throws { try b.engine.retainHistory(age: nil, sizeBytes: 100_000) }
        try retain()
        #expect(try numbers() == Array(2908...3000))
        // It is measured again once it has grown by a sixteenth.
        try insert(5, bytes: 1000)
        try retain()
        #expect(try numbers() == Array(2908...3005))
        try insert(1, bytes: 1000)
        try retain()
        #expect(try numbers() == Array(2914...3006))
        // A few large ones, too.
        try insert(1, bytes: 50_000)
        try retain()
        #expect(try numbers().count == 47)
        try insert(100, bytes: 200_000)
        try retain()
        #expect(try numbers() == [3107])
    }

    @Test func anAgentThatStopsLeavesTheRestForTheNextTime() throws {
        try insert(3000, bytes: 1000)
        var steps = 0
        try b.engine.retainHistory(age: .milliseconds(1), sizeBytes: 1) {
            steps += 1
            return (try? numbers().count).map { $0 <= 2000 } ?? true
        }
        #expect(steps > 0)
        #expect(try numbers().count == 2000)
        try b.engine.retainHistory(age: nil, sizeBytes: 100_000)
        #expect(try numbers().count == 93)
    }

    @Test func withoutBoundsEveryConflictStays() throws {
        try conflict(1)
        try conflict(2)
        b.clock.milliseconds += 1000 * Self.day
        try b.engine.retainHistory(age: nil, sizeBytes: nil)
        #expect(try numbers() == [1, 2])
    }
}
