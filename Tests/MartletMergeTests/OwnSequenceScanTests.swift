import MartletCore
import MartletMerge
import Testing

@Suite struct OwnSequenceScanTests {
    private func contiguous(_ sequences: [Int64]) -> Int64 {
        var scan = OwnSequenceScan()
        for sequence in sequences { scan.note(sequence) }
        return scan.contiguous
    }

    @Test func theScanDetectsAndFillsHoles() {
        #expect(contiguous([]) == 0)
        #expect(contiguous([1, 2, 3]) == 3)
        #expect(contiguous([1, 2, 5, 6]) == 2)
        #expect(contiguous([2, 3]) == 0)
        #expect(contiguous([1, 2, 5, 6, 3, 4, 5, 6]) == 6)
        #expect(contiguous([1, 1, 1]) == 1)
        #expect(contiguous([5, 1, 3, 2, 4]) == 5)
    }

    @Test func aTransactionCountsOnceAllItsChunksArrived() {
        var scan = OwnSequenceScan()
        scan.note(1)
        for index in [0, 2, 2] { scan.note(2, chunk: (index, 3)) }
        scan.note(3)
        #expect(scan.contiguous == 1)
        // Republished in chunks of another size.
        for index in [0, 1] { scan.note(2, chunk: (index, 2)) }
        #expect(scan.contiguous == 3)
        scan.note(2, chunk: (0, 3))
        #expect(scan.contiguous == 3)
    }

    @Test func theScanReportsMissingSequences() {
        var scan = OwnSequenceScan()
        #expect(scan.missing(through: 3) == [1...3])
        scan.note(2)
        scan.note(5...6)
        #expect(scan.missing(through: 9) == [1...1, 3...4, 7...9])
        #expect(scan.missing(through: 3) == [1...1, 3...3])
        scan.note(1...9)
        #expect(scan.missing(through: 9).isEmpty)
    }

    @Test func theScanContinuesFromASnapshot() {
        #expect(OwnSequenceScan(SequenceSet(applied: 9, gaps: [1...2]).ranges).contiguous == 0)
        #expect(OwnSequenceScan([1...4, 6...9]).contiguous == 4)
    }
}
