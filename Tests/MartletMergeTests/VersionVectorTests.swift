import Foundation
import MartletCore
import MartletMerge
import Testing

@Suite struct VersionVectorTests {
    private let nodes = [NodeID(UUID())]

    @Test func aVectorCoversAnotherWhoseSequencesItHas() {
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
}
