import Foundation
import Testing

@testable import MartletSync

@Suite struct PublishWindowTests {
    @Test func onlyTheContiguousPrefixCounts() {
        var window = PublishWindow(acknowledged: 4)
        for sequence in 5...8 { window.send(Int64(sequence), messages: sequence == 6 ? 2 : 1, bytes: 10) }
        window.acknowledge(8)
        window.acknowledge(6)
        #expect(window.acknowledged == 4)
        window.acknowledge(5)
        #expect(window.acknowledged == 5)
        window.acknowledge(6)
        #expect(window.acknowledged == 6)
        #expect(window.inFlightBytes == 10)
        window.acknowledge(7)
        #expect(window.acknowledged == 8 && window.isEmpty && window.inFlightBytes == 0)
    }

    @Test func afterAFailureItBeginsAgainBehindThePrefix() {
        var window = PublishWindow(acknowledged: 0)
        for sequence in 1...3 { window.send(Int64(sequence), messages: 1, bytes: 1) }
        window.acknowledge(1)
        window.fail(2)
        window.acknowledge(3)
        #expect(window.acknowledged == 1 && window.hasFailed && window.isAnswered)
        window.restart()
        #expect(window.sent == 1 && !window.hasFailed && window.isEmpty)
        window.restart(from: 9)
        #expect(window.acknowledged == 1)
        window.restart(from: 0)
        #expect(window.acknowledged == 0)
    }

    @Test func answersThatComeTwiceOrLateChangeNothing() {
        var window = PublishWindow(acknowledged: 0)
        window.send(1, messages: 1, bytes: 1)
        window.acknowledge(1)
        window.acknowledge(1)
        window.fail(7)
        window.restart()
        window.acknowledge(2)
        #expect(window.acknowledged == 1 && window.inFlightBytes == 0)
    }
}

@Suite struct OwnSequenceScanTests {
    private func contiguous(_ sequences: [Int64]) -> Int64 {
        var scan = OwnSequenceScan()
        for sequence in sequences { scan.note(sequence) }
        return scan.contiguous
    }

    @Test func holesAreSeenAndFilled() {
        #expect(contiguous([]) == 0)
        #expect(contiguous([1, 2, 3]) == 3)
        #expect(contiguous([1, 2, 5, 6]) == 2)
        #expect(contiguous([2, 3]) == 0)
        #expect(contiguous([1, 2, 5, 6, 3, 4, 5, 6]) == 6)
        #expect(contiguous([1, 1, 1]) == 1)
        #expect(contiguous([5, 1, 3, 2, 4]) == 5)
    }

    @Test func aTransactionCountsOnceAllItsChunksAreSeen() {
        var scan = OwnSequenceScan()
        scan.note(1)
        for index in [0, 2, 2] { scan.note(2, chunk: (index, 3)) }
        scan.note(3)
        #expect(scan.contiguous == 1)
        // Sent again, in chunks of another size.
        for index in [0, 1] { scan.note(2, chunk: (index, 2)) }
        #expect(scan.contiguous == 3)
        scan.note(2, chunk: (0, 3))
        #expect(scan.contiguous == 3)
    }
}

@Suite struct HybridClockTests {
    @Test func itTicksOnAlsoWhereTheWallClockStandsOrGoesBack() {
        var clock = HybridClock()
        let readings = [1000, 1000, 900, 1001, 0, 1001].map { clock.tick(at: $0) }
        #expect(readings == readings.sorted() && Set(readings).count == readings.count)
        #expect(readings[0].milliseconds == 1000 && readings[3].milliseconds == 1001)
    }

    @Test func whatWasObservedIsBeforeTheNextReading() {
        var clock = HybridClock(last: HybridTime(milliseconds: 5))
        let remote = HybridTime(milliseconds: 9000)
        clock.observe(remote)
        #expect(clock.tick(at: 10) == remote.next)
        clock.observe(HybridTime(milliseconds: 1))
        #expect(clock.last == remote.next)
    }

    @Test func aFullCounterFlowsOver() {
        var clock = HybridClock(last: HybridTime(rawValue: 5 << 16 | 0xffff))
        #expect(clock.tick(at: 5) == HybridTime(rawValue: 6 << 16))
    }

    @Test func timesOutOfRangeAreMovedIntoIt() {
        #expect(HybridTime(milliseconds: -5) == .zero)
        #expect(HybridTime(milliseconds: .max).milliseconds == 1 << 47 - 1)
    }
}

@Suite struct NodeIDTests {
    @Test func aNodeIsReadFromTextAsFoundationReadsIt() throws {
        var random = SplitMix(seed: 1)
        for _ in 0..<50 {
            let uuid = random.uuid()
            #expect(NodeID(text: Array(uuid.uuidString.utf8)) == NodeID(uuid))
            #expect(NodeID(text: Array(uuid.uuidString.lowercased().utf8)) == NodeID(uuid))
        }
    }

    @Test(arguments: [
        "", "0", "01234567-89AB-CDEF-0123-456789ABCDE", "01234567-89AB-CDEF-0123-456789ABCDEF0",
        "01234567089AB-CDEF-0123-456789ABCDEF", "0123456-789AB-CDEF-0123-456789ABCDEF",
        "01234567-89AB-CDEF-0123-456789ABCDEG", "01234567-89AB-CDEF-0123-456789ABCD/:",
        "01234567-89AB-CDEF-0123-456789ABCD@`",
        "{1234567-89AB-CDEF-0123-456789ABCDE}",
    ])
    func otherTextIsNoNode(text: String) { #expect(NodeID(text: Array(text.utf8)) == nil) }
}

@Suite struct ChecksumTests {
    @Test func itIsTheOneOfZlib() {
        // The check value that catalogues of checksums give (https://reveng.sourceforge.io/crc-catalogue/).
        #expect(CRC32.of(Array("123456789".utf8)) == 0xcbf4_3926)
        #expect(CRC32.digits(Array("123456789".utf8)) == Array("cbf43926".utf8))
        #expect(CRC32.digits([]) == Array("00000000".utf8))
    }

    /// Bit by bit, as it is defined.
    private func slow(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum & 1 == 1 ? 0xedb8_8320 ^ sum >> 1 : sum >> 1 }
        }
    }

    @Test func itIsTheSameForEveryLength() {
        var random = SplitMix(seed: 1)
        for count in 0...70 {
            let bytes = random.bytes(count)
            #expect(CRC32.of(bytes) == slow(bytes), "\(bytes)")
        }
    }
}
