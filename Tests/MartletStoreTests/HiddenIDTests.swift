import Foundation
import MartletStore
import MartletTestSupport
import Testing

/// Stores have saved these IDs, so that their derivation must never change. Python's SHA-256 computed the expected
/// ones.
struct HiddenIDTests {
    private let namespace = UUID(uuidString: "8A5B1C3E-0F2D-4B6A-9C8E-7D1F2A3B4C5D") ?? UUID()

    private func id(_ text: String) throws -> StableID {
        let uuid = try #require(UUID(uuidString: text))
        return StableID(hidden: withUnsafeBytes(of: uuid.uuid) { Array($0) })
    }

    @Test func derivedIDsNeverChange() throws {
        #expect(
            try HiddenID.existing(namespace: namespace, entity: "naïve table", row: -7)
                == id("8C5B482F-C733-8F24-AB5A-25F70227BE87"))
        #expect(
            try HiddenID.inserted(namespace: namespace, change: 1 << 40, time: 1_764_240_000_000)
                == id("7D2DC324-D44E-8330-B565-182BC83BAD6B"))
        #expect(
            try HiddenID.reserved(namespace: namespace, entity: "trip", change: 42, time: -1)
                == id("08D73352-10D0-8C77-B7C7-1A0F2B02746E"))
    }

    @Test func ascendingIDsNeverChange() throws {
        let ids = HiddenIDRule(namespace: namespace, firstAscending: 0)
        #expect(
            try ids.inserted(change: 300, time: 1_764_240_000_000) == id("CC138A29-0000-8000-84B0-442B98AE59C5"))
        #expect(
            try ids.inserted(change: (1 << 40) - 1, time: 1_764_240_000_000)
                == id("CC138A29-FFFF-8FFF-BFFC-BC50F881AB8C"))
        #expect(
            try ids.reserved("trip", row: 6, change: 42, time: -1) == id("CC138A29-0000-8000-80A9-AFEC0C11EEFA"))
        #expect(
            try ids.renamed("naïve table", row: -7, change: 42, time: 1_764_240_000_000)
                == id("CC138A29-0000-8000-80AA-D28B8762B5C2"))
        let existing = ids.existing("naïve table")
        #expect(try existing(7) == id("6952E47E-1FE8-85A4-8000-000000000007"))
        #expect(try existing((1 << 62) - 1) == id("6952E47E-1FE8-85A4-BFFF-FFFFFFFFFFFF"))
    }

    /// Numbers of any magnitude, so that each bit of an ID is used.
    private func numbers(_ random: inout SplitMix, below limit: Int64) -> [Int64] {
        (0..<200).map { _ in Int64(random.next() >> UInt64(1 + random.below(63))) % limit } + [0, 1, limit - 1]
    }

    private func isAscending(_ ids: [StableID]) -> Bool {
        zip(ids, ids.dropFirst()).allSatisfy { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>) func laterChangesAndGreaterKeysHaveGreaterIDs(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let ids = HiddenIDRule(namespace: random.uuid(), firstAscending: 0)
        let changes = Set(numbers(&random, below: AscendingID.changeLimit)).sorted()
        #expect(isAscending(changes.map { ids.inserted(change: $0, time: Int64(random.below(9))) }))
        let rows = Set(numbers(&random, below: AscendingID.rowLimit)).sorted()
        #expect(isAscending(rows.map(ids.existing("item"))))
    }

    /// Stores, forks, lost and repeated changes, and tables: whatever differs makes another ID.
    @Test(arguments: 1...10 as ClosedRange<UInt64>) func noTwoDerivedIDsAreEqual(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var ids: [StableID] = []
        let changes = Set(numbers(&random, below: AscendingID.changeLimit).prefix(20) + [AscendingID.changeLimit])
        let tables = ["item", "item/1", "items", ""]
        for namespace in (0..<4).map({ _ in random.uuid() }) {
            let old = HiddenIDRule(namespace: namespace, firstAscending: nil)
            let new = HiddenIDRule(namespace: namespace, firstAscending: 0)
            for change in changes {
                for time: Int64 in [-1, 0, 1, 1_764_240_000_000] {
                    ids.append(new.inserted(change: change, time: time))
                    if change < AscendingID.changeLimit { ids.append(old.inserted(change: change, time: time)) }
                    for (table, row) in zip(tables, Int64(0)...) {
                        ids.append(new.reserved(table, row: row, change: change, time: time))
                        ids.append(new.reserved(table, row: -1, change: change, time: time))
                    }
                    guard change < AscendingID.changeLimit else { continue }
                    for table in tables { ids.append(new.renamed(table, row: 7, change: change, time: time)) }
                }
            }
            for table in tables {
                ids += [Int64.min, -1, AscendingID.rowLimit].map(new.existing(table))
                for rule in [old, new] { ids += [0, 1, 5, AscendingID.rowLimit - 1].map(rule.existing(table)) }
            }
        }
        #expect(Set(ids).count == ids.count)
    }

    @Test func numbersWithoutRoomInAnAscendingIDGetOneInRandomOrder() {
        let ids = HiddenIDRule(namespace: namespace, firstAscending: 0)
        let limit = AscendingID.changeLimit
        #expect(
            ids.inserted(change: limit, time: 5) == HiddenID.inserted(namespace: namespace, change: limit, time: 5))
        for row in [Int64.min, -1, AscendingID.rowLimit, .max] {
            #expect(
                ids.existing("item")(row) == HiddenID.existing(namespace: namespace, entity: "item", row: row))
        }
    }

    @Test func allDerivedIDsAreUUIDsOfVersion8() throws {
        let ids = HiddenIDRule(namespace: namespace, firstAscending: 300)
        let changes = [299, 300, AscendingID.changeLimit - 1, AscendingID.changeLimit]
        for id in changes.map({ ids.inserted(change: $0, time: 5) }) + [-1, 0, 7].map(ids.existing("item")) {
            guard case .blob(let bytes)? = try id.values().first else {
                Issue.record("The ID is no blob.")
                continue
            }
            #expect(bytes.count == 16)
            #expect(bytes[6] >> 4 == 8 && bytes[8] >> 6 == 0b10)
        }
    }

    @Test func onlyChangesFromTheFirstAscendingOneOnGetAscendingIDs() {
        let ids = HiddenIDRule(namespace: namespace, firstAscending: 300)
        #expect(ids.inserted(change: 299, time: 5) == HiddenID.inserted(namespace: namespace, change: 299, time: 5))
        #expect(ids.inserted(change: 300, time: 5) != HiddenID.inserted(namespace: namespace, change: 300, time: 5))
        // Such a table may have been attached before, and other nodes may know its rows.
        #expect(ids.existing("item")(7) == HiddenID.existing(namespace: namespace, entity: "item", row: 7))
    }
}
