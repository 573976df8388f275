import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// The IDs that a store assigns to rows of a table with an integer key, in stores of today and of an earlier format.
@Suite struct AscendingIDTests {
    private static let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, v INTEGER)"
    private static let filled = "\(schema); INSERT INTO item VALUES (-3, 1), (2, 1), (7, 1), (1000, 1)"

    /// A store that an earlier version created, and in which that version works.
    private func oldStore(_ schema: String, attach request: AttachRequest = .init()) throws -> TemporaryStore {
        let temporary = try TemporaryStore(schema, attach: nil)
        try temporary.run(.shell, OldFormat.sql(store: 14))
        _ = try temporary.store.attach(request)
        return temporary
    }

    private func inserts(_ store: Store) throws -> [HistoryChange] {
        try store.fetchHistory().flatMap(\.changes).filter { $0.kind == .insert }
    }

    private func isAscending(_ ids: [StableID]) -> Bool {
        zip(ids, ids.dropFirst()).allSatisfy { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    @Test func rowsOfAllProgramsGetIDsInTheOrderOfTheirInserts() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.run(.shell, "INSERT INTO item VALUES (9, 1), (8, 1)")
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (-1, 1); DELETE FROM item") }
        try temporary.run(.python, "INSERT INTO item VALUES (9, 2); INSERT INTO item VALUES (1, 2)")
        let ids = try inserts(temporary.store).map { try #require($0.identity) }
        #expect(ids.count == 5)
        #expect(isAscending(ids))
    }

    @Test func existingRowsGetIDsInTheOrderOfTheirKeys() throws {
        let temporary = try TemporaryStore(Self.filled)
        let ids = try temporary.store.identities(of: "item")
        #expect(ids.count == 4)
        #expect(isAscending([2, 7, 1000].compactMap { ids[$0] }))
        #expect(
            ids[-3] == HiddenID.existing(namespace: temporary.store.identifier, entity: "item", row: -3))
        #expect(try temporary.store.audit().isClean)
    }

    @Test func copiesAttachedWithOneSeedByDifferentVersionsAgree() throws {
        var request = AttachRequest()
        request.seed = UUID(uuidString: "11111111-2222-3333-4444-555555555555")
        let seed = try #require(request.seed)
        for temporary in [try oldStore(Self.filled, attach: request), try TemporaryStore(Self.filled, attach: request)]
        {
            let ids = try temporary.store.identities(of: "item")
            #expect(ids.count == 4)
            for (row, id) in ids { #expect(id == HiddenID.existing(namespace: seed, entity: "item", row: row)) }
            // The index was built after the rows.
            #expect(
                try temporary.lines(
                    "SELECT count(*) FROM pragma_index_list('\(InternalName.side(1))') WHERE \"unique\" = 1") == ["1"])
            #expect(try temporary.store.audit().isClean)
        }
    }

    @Test func aStoreOfFormat14KeepsItsIDs() throws {
        let temporary = try oldStore(Self.filled)
        let namespace = temporary.store.identifier
        try temporary.raw("INSERT INTO item VALUES (8, 2); UPDATE item SET v = 3 WHERE id = 7")
        let existing = try temporary.store.identities(of: "item")
        let before = try temporary.store.fetchHistory().flatMap(\.changes)
        #expect(existing[7] == HiddenID.existing(namespace: namespace, entity: "item", row: 7))
        #expect(before[1].identity == existing[7])

        let store = try Store(path: temporary.path)
        defer { try? store.close() }
        try temporary.raw("INSERT INTO item VALUES (9, 3), (10, 3); DELETE FROM item WHERE id = 7")
        #expect(try store.identities(of: "item") == existing.filter { $0.key != 7 })
        let changes = try store.fetchHistory().flatMap(\.changes)
        // The first insert is not stamped yet, but somebody may have read its ID.
        #expect(changes.prefix(2).map(\.identity) == before.map(\.identity))
        #expect(changes.last?.identity == existing[7])
        let new = try inserts(store).suffix(2).map { try #require($0.identity) }
        #expect(isAscending(new))
        let prefixes = Set(new.map { $0.bytes.prefix(6) })
        #expect(prefixes.count == 1)
        #expect(before[0].identity.map { !prefixes.contains($0.bytes.prefix(6)) } == true)
        // A table that is attached now may have been attached before.
        try temporary.raw("CREATE TABLE late(id INTEGER PRIMARY KEY); INSERT INTO late VALUES (4)")
        _ = try store.attach()
        #expect(
            try store.identities(of: "late") == [4: HiddenID.existing(namespace: namespace, entity: "late", row: 4)])
    }

    /// A store of an earlier format that is only read can't be migrated.
    @Test func aReaderOfFormat14TellsTheIDsOfThatFormat() throws {
        let temporary = try oldStore(Self.schema)
        try temporary.raw("INSERT INTO item VALUES (1, 1)")
        let ids = try inserts(temporary.store).map(\.identity)
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        let reader = try Store(path: temporary.path, configuration: configuration)
        defer { try? reader.close() }
        #expect(try inserts(reader).map(\.identity) == ids)
        // Another program migrates the store while the reader has it open.
        try Store(path: temporary.path).close()
        try temporary.raw("INSERT INTO item VALUES (2, 1)")
        #expect(try inserts(temporary.store).count == 2)
        #expect(try inserts(reader).map(\.identity) == inserts(temporary.store).map(\.identity))
        #expect(try inserts(reader).first?.identity == ids.first)
    }

    /// Inserts, deletes, reused keys, rollbacks, and copies that go on with the same numbers at other times.
    @Test(arguments: 1...20 as ClosedRange<UInt64>) func noTwoRowsOfAStoreAndItsCopiesShareAnID(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var stores = [try TemporaryStore(Self.schema)]
        var label = 0
        func insert() -> String {
            label += 1
            return "INSERT INTO item(v) VALUES (\(label))"
        }
        for _ in 0..<60 {
            let temporary = random.pick(stores)
            SQLiteClock.advance()
            switch random.below(9) {
            case 0...2: try temporary.raw(insert())
            case 3: try temporary.raw("\(insert()); \(insert())")
            case 4:
                let sql = "\(insert()); SELECT no_such_function()"
                #expect(throws: (any Error).self) { try temporary.raw(sql) }
            case 5: try temporary.raw("DELETE FROM item WHERE id = (SELECT max(id) FROM item)")
            case 6: try temporary.raw("UPDATE item SET id = id + 100 WHERE id = (SELECT max(id) FROM item)")
            case 7:
                let sql = insert()
                try temporary.store.write { try $0.execute(sql: sql) }
            default:
                guard stores.count < 4 else { continue }
                let folder = try TemporaryFolder()
                try temporary.run(.shell, "VACUUM INTO '\(folder.path("store.db"))'")
                stores.append(try TemporaryStore(folder))
            }
        }
        var labels: [StableID: Value] = [:]
        for temporary in stores {
            let changes = try inserts(temporary.store)
            #expect(isAscending(try changes.map { try #require($0.identity) }))
            for change in changes {
                let (id, value) = (try #require(change.identity), try #require(change.values["v"]))
                let former = labels.updateValue(value, forKey: id)
                #expect(former == nil || former == value)
            }
        }
        // A row that several copies have has one ID.
        #expect(Set(labels.values).count == labels.count)
    }
}
