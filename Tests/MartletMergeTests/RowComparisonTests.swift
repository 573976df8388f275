import Foundation
import MartletCore
import MartletMerge
import Testing

@Suite struct RowComparisonTests {
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

    private let column = ComparedColumn(slot: 1, isReference: false, wasReference: false)

    @Test func anUnresolvedReferenceIsNoDifference() {
        var column = column
        column.isReference = true
        let reference = Value.reference(Reference(entity: "t", identity: StableID(values: [.integer(7)])))
        #expect(RowComparison(mine: record(5), theirs: record(5, [1: reference]), columns: [column]).isSame)
        #expect(RowComparison(mine: record(5, [1: reference]), theirs: record(5), columns: [column]).isSame)
        #expect(
            RowComparison(mine: record(5, [1: reference]), theirs: record(5, [1: .null]), columns: [column]).tied == [1]
        )
    }

    @Test func aRowFromBeforeTheDeleteIsOlder() {
        let dead = record(nil, deleted: 9, [:])
        let comparison = RowComparison(mine: dead, theirs: record(5), columns: [column])
        #expect(comparison.isExistenceOlder && comparison.newer.isEmpty && !comparison.isExistenceNewer)
        let again = RowComparison(mine: dead, theirs: record(10), columns: [column])
        #expect(again.isExistenceNewer && again.newer == [1])
    }

    @Test func equalStampsWithDifferentValuesAreTied() {
        let comparison = RowComparison(mine: record(5), theirs: record(5, [1: .integer(2)]), columns: [column])
        #expect(comparison.tied == [1] && comparison.newer.isEmpty)
        #expect(RowComparison(mine: record(0), theirs: record(0, [1: .integer(2)]), columns: [column]).tied.isEmpty)
        #expect(RowComparison(mine: record(5), theirs: record(5), columns: [column]).isSame)
    }

    @Test func theNodeOfTheStampBreaksATieAndOtherwiseTheGreaterValue() {
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
}
