import Foundation
import MartletCore
import MartletMerge
import MartletTestSupport
import Testing

/// Merging as a pure function: the same operations give the same row in any order and with any repetition.
@Suite struct RowClocksTests {
    enum Operation: Equatable {
        case insert([Int], Stamp)
        case update([Int], Stamp)
        case delete(Stamp)
    }

    static let columns = 1...3

    /// The visible state of a row.
    struct Seen: Equatable {
        var isAlive: Bool
        var stamps: [Stamp?]

        init(_ clocks: RowClocks) {
            isAlive = clocks.isAlive
            stamps = RowClocksTests.columns.map { clocks.stamp(of: $0) }
        }
    }

    private func apply(_ operation: Operation, to clocks: inout RowClocks) {
        switch operation {
        case .insert(let columns, let stamp): _ = clocks.insert(columns, of: Self.columns, at: stamp)
        case .update(let columns, let stamp): _ = clocks.update(columns, at: stamp)
        case .delete(let stamp): _ = clocks.delete(at: stamp)
        }
    }

    private func merged(_ operations: [Operation]) -> Seen {
        var clocks = RowClocks()
        for operation in operations { apply(operation, to: &clocks) }
        return Seen(clocks)
    }

    private func operations(_ random: inout SplitMix, _ nodes: [NodeID]) -> [Operation] {
        // A node uses each stamp once. Two nodes often have the same time.
        var taken = Set<Stamp>()
        return (0..<2 + random.below(6)).map { _ in
            let node = random.pick(nodes)
            var time = Int64(1 + random.below(4))
            while !taken.insert(Stamp(time: HybridTime(milliseconds: time), node: node)).inserted { time += 1 }
            let stamp = Stamp(time: HybridTime(milliseconds: time), node: node)
            let some = Self.columns.filter { _ in random.once(in: 2) }
            switch random.below(4) {
            case 0: return .delete(stamp)
            case 1: return .insert(random.once(in: 4) ? some : Array(Self.columns), stamp)
            default: return .update(some, stamp)
            }
        }
    }

    @Test(arguments: 1...300) func p20MergingIsCommutativeAndIdempotent(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let nodes = (0..<3).map { _ in NodeID(random.uuid()) }
        let operations = operations(&random, nodes)
        let expected = merged(operations.sorted { Self.stamp($0) < Self.stamp($1) })
        for _ in 0..<20 {
            var other = operations.shuffled(using: &random)
            other += other.filter { _ in random.once(in: 3) }
            #expect(merged(other) == expected)
        }
    }

    private static func stamp(_ operation: Operation) -> Stamp {
        switch operation {
        case .insert(_, let stamp), .update(_, let stamp), .delete(let stamp): stamp
        }
    }

    /// Otherwise the test above wouldn't cover the tie-break.
    @Test func theOperationsAboveOftenHaveEqualTimesOfTwoNodes() {
        let tied = (1...300).count { seed in
            var random = SplitMix(seed: UInt64(seed))
            let nodes = (0..<3).map { _ in NodeID(random.uuid()) }
            let stamps = operations(&random, nodes).map(Self.stamp)
            return Set(stamps.map(\.time)).count < stamps.count
        }
        #expect(tied > 100)
    }

    @Test func p20TheNodeIDBreaksTiesOfEqualClocks() {
        let nodes = [NodeID(UUID()), NodeID(UUID())].sorted()
        let time = HybridTime(milliseconds: 5)
        let low = Operation.insert([1, 2, 3], Stamp(time: time, node: nodes[0]))
        let high = Operation.insert([1, 2, 3], Stamp(time: time, node: nodes[1]))
        #expect(merged([low, high]) == merged([high, low]))
        #expect(merged([low, high]).stamps[0]?.node == nodes[1])
        let delete = Operation.delete(Stamp(time: time, node: nodes[1]))
        #expect(!merged([low, delete]).isAlive && !merged([delete, low]).isAlive)
    }

    @Test func onlyALaterInsertRevivesADeletedRow() {
        func at(_ time: Int64) -> Stamp { Stamp(time: HybridTime(milliseconds: time), node: .none) }
        #expect(!merged([.insert([1, 2, 3], at(1)), .delete(at(2)), .update([1], at(3))]).isAlive)
        let back = merged([.insert([1, 2, 3], at(1)), .delete(at(2)), .update([1], at(5)), .insert([1, 2, 3], at(4))])
        #expect(back.isAlive)
        #expect(back.stamps == [at(5), at(4), at(4)])
    }
}
