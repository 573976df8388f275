import Foundation
import MartletExport
import MartletSync
import MartletTestSupport
import Testing

/// Whose turn it is to export. Time passes only where a test says so.
@Suite struct ExportLeaseTests {
    private let start = ContinuousClock.now

    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    private func lease(_ node: UInt8) -> ExportLease {
        ExportLease(
            node: NodeID(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, node))), name: "n\(node)",
            timeout: .seconds(12))
    }

    /// Puts the next record of a run on the topic, and lets these runs read it.
    @discardableResult
    private func send(_ lease: inout ExportLease, at second: Int) -> LeaseRecord? {
        let record = lease.next(at: at(second))
        if let record { lease.note(record, at: at(second)) }
        return record
    }

    /// Records are made outside of the macros, which can't change a lease.
    private func found(_ record: LeaseRecord?) throws -> LeaseRecord { try #require(record) }

    @Test func theFirstNodeExportsAtOnce() throws {
        var a = lease(1)
        #expect(!a.mayExport(at: at(0)))
        let record = try found(send(&a, at: 0))
        #expect(record.term == 1 && record.since == 1)
        #expect(a.mayExport(at: at(0)) && a.mayExport(at: at(7)))
        // Without a renewal, it stops long before another node may begin.
        #expect(!a.mayExport(at: at(8)))
        let early = a.next(at: at(2))
        #expect(early == nil)
        let renewal = try found(send(&a, at: 8))
        #expect(renewal.term == 1 && a.mayExport(at: at(15)))
    }

    /// Over a bad link, a node connects again and again, and each time it reads the last records of an exporter that is
    /// gone.
    @Test func recordsThatAreReadAgainAreNoSignOfLife() throws {
        var (a, b) = (lease(1), lease(2))
        var records: [LeaseRecord] = []
        for second in [0, 4, 8] { records.append(try found(send(&a, at: second))) }
        for second in [8, 13, 19] {
            for record in records { b.note(record, at: at(second)) }
        }
        let early = b.next(at: at(19))
        #expect(early == nil)
        let claim = try found(b.next(at: at(20)))
        #expect(claim.term == 2 && claim.since == 2)
    }

    @Test func oneOfTwoClaimsOfATermWins() throws {
        var (a, b) = (lease(1), lease(2))
        let first = try found(a.next(at: at(0)))
        let second = try found(b.next(at: at(0)))
        for record in [first, second] {
            a.note(record, at: at(1))
            b.note(record, at: at(1))
        }
        #expect(a.mayExport(at: at(1)) && !b.mayExport(at: at(1)))
        for second in [2, 12] {
            let early = b.next(at: at(second))
            #expect(early == nil)
        }
        // The first one is silent.
        let claim = try found(b.next(at: at(13)))
        #expect(claim.term == 2 && claim.since == 2)
    }

    @Test func aRenewalProvesWhoseClaimWasTheFirst() throws {
        var (a, b) = (lease(1), lease(2))
        let first = try found(a.next(at: at(0)))
        let second = try found(b.next(at: at(0)))
        for record in [first, second] {
            a.note(record, at: at(1))
            b.note(record, at: at(1))
        }
        let renewal = try found(a.next(at: at(4)))
        // The broker has compacted the first claim away.
        var again = lease(2)
        again.note(second, at: at(5))
        again.note(renewal, at: at(5))
        #expect(again.holder?.record == renewal)
        let early = again.next(at: at(6))
        #expect(early == nil)
    }

    @Test func aNodeThatTakesOverWaitsUntilTheOtherOneHasStopped() throws {
        var (a, b) = (lease(1), lease(2))
        let first = try found(send(&a, at: 0))
        b.note(first, at: at(0))
        let claim = try found(b.next(at: at(12)))
        // A renewal that was on its way for long comes just before the claim.
        let renewal = try found(a.next(at: at(11)))
        a.note(renewal, at: at(12))
        b.note(renewal, at: at(12))
        #expect(a.mayExport(at: at(18)))
        b.note(claim, at: at(12))
        for second in 12..<24 {
            #expect(!b.mayExport(at: at(second)))
            send(&b, at: second)
        }
        #expect(!a.mayExport(at: at(19)))
        #expect(b.mayExport(at: at(24)))
        a.note(claim, at: at(25))
        let late = a.next(at: at(25))
        #expect(!a.holdsIt && late == nil)
    }

    @Test func theNextRunOfTheSameNodeContinuesAtOnce() throws {
        var a = lease(1)
        let first = try found(send(&a, at: 0))
        var again = lease(1)
        again.note(first, at: at(1))
        let claim = try found(send(&again, at: 1))
        #expect(claim.term == 2 && claim.since == 1)
        #expect(again.mayExport(at: at(1)) && again.predecessor == first)
        a.note(claim, at: at(1))
        #expect(!a.mayExport(at: at(1)))
        var other = lease(2)
        other.note(claim, at: at(1))
        let taken = try found(other.next(at: at(13)))
        #expect(taken.term == 3 && taken.since == 3)
        again.note(taken, at: at(13))
        var third = lease(1)
        third.note(taken, at: at(13))
        let last = third.next(at: at(25))
        #expect(last?.since == 4)
    }

    @Test func aLeaseThatWasGivenBackIsFree() throws {
        var (a, b) = (lease(1), lease(2))
        send(&a, at: 0)
        let release = try found(a.release(at: at(1)))
        a.note(release, at: at(1))
        b.note(release, at: at(1))
        #expect(!a.mayExport(at: at(1)))
        send(&b, at: 1)
        #expect(b.mayExport(at: at(1)))
        let (ofA, ofB) = (a.release(at: at(1)), b.release(at: at(1)))
        #expect(ofB != nil && ofA == nil)
    }

    @Test func recordsOutOfRangeAreNone() throws {
        let good =
            #"{"beat":1,"claim":true,"instance":"\#(UUID())","name":"a","node":"\#(UUID())","released":false,"#
            + #""since":1,"term":2}"#
        #expect(try JSONDecoder().decode(LeaseRecord.self, from: Data(good.utf8)).term == 2)
        for bad in [
            good.replacing(#""term":2"#, with: #""term":9223372036854775807"#),
            good.replacing(#""term":2"#, with: #""term":0"#), good.replacing(#""since":1"#, with: #""since":3"#),
            good.replacing(#""beat":1"#, with: #""beat":-1"#),
        ] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(LeaseRecord.self, from: Data(bad.utf8)) }
        }
    }
}
