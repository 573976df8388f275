import MartletCore
import Testing

@Suite struct SequenceSetTests {
    @Test func aGapEndsThePrefix() {
        #expect(SequenceSet(applied: 9, gaps: []).prefix == 9)
        #expect(SequenceSet(applied: 9, gaps: [4...5, 7...7]).prefix == 3)
        #expect(SequenceSet(applied: 9, gaps: [1...9]).prefix == 0)
    }

    @Test func sequencesBeyondTheRangeAreNeitherAppliedNorMissing() throws {
        let limit = InputBounds.greatest
        func bounded(_ applied: Int64, _ gaps: ClosedRange<Int64>...) -> SequenceSet {
            SequenceSet(bounding: applied, gaps)
        }
        #expect(bounded(5, 2...3) == SequenceSet(applied: 5, gaps: [2...3]))
        #expect(bounded(.max, 7...(.max - 1), .max...(.max)) == SequenceSet(applied: 6, gaps: []))
        #expect(bounded(.max, 2...3, 7...(.max)) == SequenceSet(applied: 6, gaps: [2...3]))
        #expect(bounded(.max) == SequenceSet(applied: limit, gaps: []))
        #expect(bounded(.max, 1...(.max)) == SequenceSet(applied: 0, gaps: []))
        #expect(bounded(limit, 3...limit) == SequenceSet(applied: limit, gaps: [3...limit]))
    }

    /// Two sets with the maximum number of gaps of a message are merged quickly, with the same result as one by one.
    @Test func unionMergesManyGapsInOnePass() throws {
        func gaps(_ first: Int64, _ count: Int64) -> [ClosedRange<Int64>] {
            stride(from: first, to: 60_000, by: 6).map { $0...($0 + count - 1) }
        }
        func set(_ first: Int64) -> SequenceSet { SequenceSet(applied: 60_003, gaps: gaps(first, 4)) }
        let merged = set(1).union(set(3))
        let both = gaps(3, 2)
        #expect(merged.gaps == both)
        #expect(set(3).union(set(1)) == merged)
    }
}
