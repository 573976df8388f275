import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The newest clocks in memory, compared with a model.
@Suite struct RecentEntriesTests {
    /// The newest clocks of each row. Nil: the row is gone.
    private typealias Model = [Int64: [StableID: RowClocks?]]

    private let store: TemporaryStore

    init() throws {
        store = try TemporaryStore(
            """
            CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL, value);
            CREATE TABLE place(name TEXT PRIMARY KEY NOT NULL, value);
            """)
        // Creates the engine's tables.
        try SyncEngine(path: store.path).close()
    }

    private func context(_ db: Database) throws -> ReplicaContext { try ReplicaContext(db, now: { 0 }) }

    private func clocks(_ random: inout SplitMix) -> RowClocks {
        func stamp() -> Stamp {
            let node = withUnsafeBytes(of: UInt64(1 + random.below(3))) { Array($0) }
            return Stamp(
                time: HybridTime(milliseconds: Int64(1 + random.below(1000))),
                node: NodeID(bytes: node + node) ?? .none)
        }
        var exceptions = ColumnStamps()
        if random.once(in: 3) { exceptions[2] = stamp() }
        return RowClocks(inserted: stamp(), deleted: random.once(in: 4) ? stamp() : nil, exceptions: exceptions)
    }

    /// IDs that differ late or only in their length, and some that are longer than what is written at a time.
    private func identity(_ random: inout SplitMix) -> StableID {
        let prefix = [UInt8](repeating: random.pick([0, 255]), count: random.pick([0, 3, 7, 8, 9, 20, 5000]))
        return StableID(bytes: prefix + (0..<random.below(3)).map { _ in random.pick([0, 1, 255]) })
    }

    private func flushed(_ db: Database, _ entity: Int64, _ context: ReplicaContext) throws -> [StableID: RowClocks] {
        let read = try PreparedStatement(db, "SELECT hlc, node, attrs, ident FROM \(InternalName.side(entity))")
        var found: [StableID: RowClocks] = [:]
        while try read.step() {
            found[StableID(bytes: read.blob(3))] = context.clocks.decode(read, from: 0, of: entity)
        }
        return found
    }

    @Test(arguments: UInt64(0)..<30) func theNewestClocksOfEachRowAreFound(seed: UInt64) throws {
        try store.store.writeOwnTables { db in
            var random = SplitMix(seed: seed)
            var context = try context(db)
            let entities = try ["item", "place"].map { try #require(context.catalog.entity(named: $0)).id }
            var model = Model()
            func check(_ entity: Int64, _ identity: StableID) throws {
                let expected = model[entity]?[identity] ?? nil
                let entry = context.recent.find(entity, identity)
                let found = try entry.map(\.clocks) ?? flushed(db, entity, context)[identity]
                #expect(found == expected)
            }
            for _ in 0..<300 {
                switch random.below(40) {
                case 0: try context.recent.flush(db)
                case 1...5:
                    // A few at a time, so that a flush takes several commits, in which other clocks are set.
                    try context.recent.finish(db, flushingFrom: random.pick([1, 10, 20, .max]), context.notes)
                    try context.notes.write(db)
                case 6:
                    try context.recent.finish(db, flushingFrom: .max, context.notes)
                    try context.notes.write(db)
                    #expect(try context.recent.isCurrent())
                    let other = try self.context(db)
                    if random.once(in: 2) {
                        let hadAny = entities.contains { !other.recent.identities(of: $0).isEmpty }
                        try other.recent.flush(db)
                        #expect(try context.recent.isCurrent() != hadAny)
                    }
                    context = other
                default:
                    let (entity, identity) = (random.pick(entities), identity(&random))
                    let clocks = random.once(in: 4) ? nil : clocks(&random)
                    try context.recent.set(db, entity, identity, clocks)
                    model[entity, default: [:]].updateValue(clocks, forKey: identity)
                }
                try check(random.pick(entities), identity(&random))
            }
            for (entity, rows) in model {
                for identity in rows.keys { try check(entity, identity) }
                let known = context.recent.identities(of: entity)
                #expect(Set(known).count == known.count && Set(known).isSubset(of: rows.keys))
            }
            try context.recent.flush(db)
            for (entity, rows) in model {
                #expect(try flushed(db, entity, context) == rows.compactMapValues(\.self))
                #expect(context.recent.identities(of: entity) == [])
            }
        }
    }

    private func count(_ db: Database, _ entity: Int64) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM \(InternalName.side(entity))") ?? 0
    }

    /// Sets the clocks of this many rows with names of this length, and returns how many were in the side
    /// table whenever that had the last one, and how many are in memory at the end.
    private func flushes(_ number: Int, length: Int, each body: (Database, ReplicaContext) throws -> Void) throws
        -> (flushed: [Int], rest: Int)
    {
        try store.store.writeOwnTables { db in
            let context = try context(db)
            let entity = try #require(context.catalog.entity(named: "item")).id
            var sizes: [Int] = []
            for row in 0..<number {
                let name = withUnsafeBytes(of: row.bigEndian) { Array($0) } + [UInt8](repeating: 0, count: length - 8)
                try context.recent.set(db, entity, StableID(bytes: name), RowClocks(inserted: .zero))
                try body(db, context)
                if context.recent.find(entity, StableID(bytes: name)) == nil { sizes.append(try count(db, entity)) }
            }
            return (sizes, context.recent.identities(of: entity).count)
        }
    }

    @Test func memoryIsBoundedByTheNumberOfRecords() throws {
        #expect(try flushes(98_100, length: 8) { _, _ in } == ([98_000], 100))
    }

    @Test func memoryIsBoundedByTheSizeOfRecords() throws {
        #expect(try flushes(20, length: 1 << 20) { _, _ in } == ([8, 16], 4))
    }

    /// Returns how many records are in the side table whenever that changes, in commits of this many.
    private func slices(_ number: Int, each size: Int, rest: Int) throws -> [Int] {
        var counts: [Int] = []
        var added = 0
        let (flushed, left) = try flushes(number, length: 8) { db, context in
            added += 1
            guard added % size == 0 else { return }
            try context.recent.finish(db, flushingFrom: 1000, context.notes)
            try context.notes.write(db)
            let count = try count(db, try #require(context.catalog.entity(named: "item")).id)
            if count != counts.last { counts.append(count) }
        }
        #expect(flushed == [] && left == rest)
        return counts
    }

    @Test func aFlushTakesSeveralCommits() throws {
        #expect(try slices(1100, each: 1, rest: 100) == [0, 250, 500, 750, 1000])
    }

    @Test func aFlushEndsHoweverMuchIsSetMeanwhile() throws {
        // Each commit of 400 flushes 800. The first flush begins at 1200, the second one at 1200 again.
        #expect(try slices(2400, each: 400, rest: 1200) == [0, 800, 1200, 2000])
    }

    @Test func aFlushThatDidNotEndIsEndedAtOnce() throws {
        #expect(try slices(1000, each: 1, rest: 1000) == [0, 250])
        try store.store.writeOwnTables { db in
            let context = try context(db)
            let entity = try #require(context.catalog.entity(named: "item")).id
            try context.recent.finish(db, flushingFrom: 1000, context.notes)
            #expect(try count(db, entity) == 1000)
            #expect(context.recent.identities(of: entity) == [])
        }
    }
}
