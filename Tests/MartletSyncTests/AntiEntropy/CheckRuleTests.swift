import Foundation
import Testing

@testable import MartletStore
@testable import MartletSync

/// The rules of checks that need no store.
@Suite struct CheckRuleTests {
    private let nodes = (1...3).map { number in
        NodeID(UUID(uuid: (UInt8(number), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    }

    private func stamp(_ time: UInt64, _ node: Int = 0) -> Stamp {
        time == 0 ? .zero : Stamp(time: HybridTime(rawValue: time), node: nodes[node])
    }

    private func record(_ inserted: UInt64?, deleted: UInt64? = nil, _ values: [Int: Value] = [1: .integer(1)])
        -> RowRecord
    {
        RowRecord(
            identity: StableID(values: [.integer(1)]),
            clocks: RowClocks(inserted: inserted.map { stamp($0) }, deleted: deleted.map { stamp($0) }), values: values)
    }

    private let column = EntityColumn(
        name: "c", formerNames: [], slot: 1, declaredType: "", isNotNull: false, reference: nil, since: 0)

    @Test func whatALostRowWasCalledIsNoDifference() {
        var column = column
        column.reference = "t"
        let reference = Value.reference(Reference(entity: "t", identity: StableID(values: [.integer(7)])))
        #expect(RowComparison(mine: record(5), theirs: record(5, [1: reference]), columns: [column]).isSame)
        #expect(RowComparison(mine: record(5, [1: reference]), theirs: record(5), columns: [column]).isSame)
        #expect(
            RowComparison(mine: record(5, [1: reference]), theirs: record(5, [1: .null]), columns: [column]).tied == [1]
        )
    }

    @Test func everyPositionIsInOneRangeOfEachLevel() {
        for level in 0...2 {
            let ranges = KeyRange.every(level: level)
            #expect(Set(ranges).count == 1 << (4 * level))
            for number in 0..<100 {
                let position = KeyRange.position(StableID(values: [.integer(Int64(number))]))
                #expect(ranges.filter { KeyRange(position, level: level) == $0 }.count == 1)
            }
        }
        #expect(KeyRange.all.parts.allSatisfy { $0.parent == .all })
        #expect(KeyRange(level: 8, prefix: 7)?.parts == [])
        #expect(KeyRange(level: 1, prefix: 1) == nil && KeyRange(level: 9, prefix: 0) == nil)
    }

    @Test func rangesAreEvenWhateverTheKeysAre() {
        var counts: [KeyRange: Int] = [:]
        for number in 0..<16_000 {
            counts[KeyRange(KeyRange.position(StableID(values: [.integer(Int64(number))])), level: 1), default: 0] += 1
        }
        #expect(counts.count == 16 && counts.values.allSatisfy { (850...1150).contains($0) })
    }

    @Test func aVectorCoversWhatItHasAllOf() {
        func vector(_ applied: Int64, _ gaps: [ClosedRange<Int64>] = []) -> VersionVector {
            var vector = VersionVector()
            vector.sets[nodes[0]] = SequenceSet(applied: applied, gaps: gaps)
            return vector
        }
        #expect(vector(5).covers(vector(5)) && vector(6).covers(vector(5)) && !vector(4).covers(vector(5)))
        #expect(!vector(9, [3...3]).covers(vector(5)) && vector(9, [3...3]).covers(vector(5, [2...4])))
        #expect(vector(5, [5...5]).covers(vector(4)) && !vector(0).covers(vector(1)))
        #expect(vector(5).covers(VersionVector()) && !VersionVector().covers(vector(1)))
        #expect(vector(9, [3...4]).missingCount(vector(11), of: nodes[0]) == 4)
    }

    @Test func whatWasSetBeforeADeleteCountsForNothing() {
        let dead = record(nil, deleted: 9, [:])
        let comparison = RowComparison(mine: dead, theirs: record(5), columns: [column])
        #expect(comparison.isExistenceOlder && comparison.newer.isEmpty && !comparison.isExistenceNewer)
        let again = RowComparison(mine: dead, theirs: record(10), columns: [column])
        #expect(again.isExistenceNewer && again.newer == [1])
    }

    @Test func equalStampsWithTwoValuesAreTied() {
        let comparison = RowComparison(mine: record(5), theirs: record(5, [1: .integer(2)]), columns: [column])
        #expect(comparison.tied == [1] && comparison.newer.isEmpty)
        #expect(RowComparison(mine: record(0), theirs: record(0, [1: .integer(2)]), columns: [column]).tied.isEmpty)
        #expect(RowComparison(mine: record(5), theirs: record(5), columns: [column]).isSame)
    }

    @Test func theAuthorOfAStampDecidesAndElseTheGreaterValue() {
        let small = Value.integer(1)
        let great = Value.integer(2)
        for (author, expected) in [(0, false), (1, true)] {
            let rule = TieRule(node: nodes[0], sender: nodes[1])
            #expect(rule.takesTheirs(stamp(5, author), mine: small, theirs: great) == expected)
            #expect(rule.takesTheirs(stamp(5, author), mine: great, theirs: small) == expected)
        }
        let third = TieRule(node: nodes[0], sender: nodes[1])
        #expect(third.takesTheirs(stamp(5, 2), mine: small, theirs: great) == true)
        #expect(third.takesTheirs(stamp(5, 2), mine: great, theirs: small) == false)
        let waiting = TieRule(node: nodes[0], sender: nodes[1], present: [nodes[2]])
        #expect(waiting.takesTheirs(stamp(5, 2), mine: small, theirs: great) == nil)
    }

    @Test func theDigestOfARowCountsClocksAndNotItsKey() throws {
        let entity = Entity(
            id: 1, name: "t", formerNames: [], columns: [column], identity: .hidden, integerKey: "id",
            isWithoutRowID: false, uniqueKeys: [], foreignKeys: [], keepsOldValues: false, uniquePolicy: .keepNewest)
        let shape = RecordShape(entity)
        var moved = record(5)
        moved.localID = 42
        #expect(shape.hash(record(5)) == shape.hash(moved))
        #expect(shape.hash(record(5)) != shape.hash(record(6)))
        #expect(shape.hash(record(5)) != shape.hash(record(5, [1: .null])))
        #expect(shape.hash(record(nil, deleted: 5, [:])) != shape.hash(record(5)))
        #expect(shape.hash(record(0)) == nil && shape.hash(record(0), countsUnclocked: true) != nil)
        #expect(RowClocks(inserted: .zero).isAlive)
    }
}
