import MartletCore
import MartletMerge
import MartletTestSupport
import Testing

@Suite struct RowComparisonTests {
    private let column = ComparedColumn(slot: 1, isReference: false, wasReference: false)

    @Test func anUnresolvedReferenceIsNoDifference() {
        var column = column
        column.isReference = true
        let reference = Value.reference(Reference(entity: "t", identity: StableID(values: [.integer(7)])))
        #expect(RowComparison(mine: sampleRow(5), theirs: sampleRow(5, [1: reference]), columns: [column]).isSame)
        #expect(RowComparison(mine: sampleRow(5, [1: reference]), theirs: sampleRow(5), columns: [column]).isSame)
        #expect(
            RowComparison(mine: sampleRow(5, [1: reference]), theirs: sampleRow(5, [1: .null]), columns: [column]).tied
                == [1]
        )
    }

    @Test func aRowFromBeforeTheDeleteIsOlder() {
        let dead = sampleRow(nil, deleted: 9, [:])
        let comparison = RowComparison(mine: dead, theirs: sampleRow(5), columns: [column])
        #expect(comparison.isExistenceOlder && comparison.newer.isEmpty && !comparison.isExistenceNewer)
        let again = RowComparison(mine: dead, theirs: sampleRow(10), columns: [column])
        #expect(again.isExistenceNewer && again.newer == [1])
    }

    @Test func equalStampsWithDifferentValuesAreTied() {
        let comparison = RowComparison(mine: sampleRow(5), theirs: sampleRow(5, [1: .integer(2)]), columns: [column])
        #expect(comparison.tied == [1] && comparison.newer.isEmpty)
        #expect(
            RowComparison(mine: sampleRow(0), theirs: sampleRow(0, [1: .integer(2)]), columns: [column]).tied.isEmpty)
        #expect(RowComparison(mine: sampleRow(5), theirs: sampleRow(5), columns: [column]).isSame)
    }

    @Test func theNodeOfTheStampBreaksATieAndOtherwiseTheGreaterValue() {
        let small = Value.integer(1)
        let great = Value.integer(2)
        for (author, expected) in [(0, false), (1, true)] {
            let rule = TieRule(node: sampleNodes[0], sender: sampleNodes[1])
            #expect(rule.takesTheirs(sampleStamp(5, author), mine: small, theirs: great) == expected)
            #expect(rule.takesTheirs(sampleStamp(5, author), mine: great, theirs: small) == expected)
        }
        let third = TieRule(node: sampleNodes[0], sender: sampleNodes[1])
        #expect(third.takesTheirs(sampleStamp(5, 2), mine: small, theirs: great) == true)
        #expect(third.takesTheirs(sampleStamp(5, 2), mine: great, theirs: small) == false)
        let waiting = TieRule(node: sampleNodes[0], sender: sampleNodes[1], present: [sampleNodes[2]])
        #expect(waiting.takesTheirs(sampleStamp(5, 2), mine: small, theirs: great) == nil)
    }
}
