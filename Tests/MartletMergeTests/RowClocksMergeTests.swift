import Foundation
import MartletCore
import MartletMerge
import MartletTestSupport
import Testing

/// Merging the clocks of a row from two nodes gives the same result as applying the changes that either node has.
@Suite struct RowClocksMergeTests {
    private enum Operation {
        case insert(Stamp)
        case update([Int], Stamp)
        case delete(Stamp)
    }

    private static let columns = Array(1...3)

    private func apply(_ operations: [Operation]) -> RowClocks {
        var clocks = RowClocks()
        for operation in operations {
            switch operation {
            case .insert(let stamp): _ = clocks.insert(Self.columns, of: Self.columns, at: stamp)
            case .update(let columns, let stamp): _ = clocks.update(columns, at: stamp)
            case .delete(let stamp): _ = clocks.delete(at: stamp)
            }
        }
        return clocks
    }

    private func seen(_ clocks: RowClocks) -> [Stamp?] {
        [clocks.isAlive ? clocks.inserted : nil, clocks.deleted] + Self.columns.map { clocks.stamp(of: $0) }
    }

    private func operations(_ random: inout SplitMix) -> [Operation] {
        let nodes = (0..<2).map { _ in NodeID(UUID()) }
        var times = Set<Int64>()
        return (0..<1 + random.below(7)).map { _ in
            var time = Int64(1 + random.below(9))
            while !times.insert(time).inserted { time += 10 }
            let stamp = Stamp(time: HybridTime(milliseconds: time), node: random.pick(nodes))
            switch random.below(4) {
            case 0: return .delete(stamp)
            case 1: return .insert(stamp)
            default: return .update(Self.columns.filter { _ in random.once(in: 2) }, stamp)
            }
        }
    }

    @Test(arguments: 1...500) func mergingStatesEqualsMergingChanges(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let all = operations(&random)
        let mine = all.filter { _ in random.once(in: 2) }.shuffled(using: &random)
        let theirs = all.filter { _ in random.once(in: 2) }.shuffled(using: &random)
        let expected = apply(mine + theirs)
        let other = apply(theirs)
        // The sender omits columns without a stamp.
        let brought = Self.columns.filter { (other.exceptions[$0] ?? other.inserted) != nil }
        var merged = apply(mine)
        let before = merged
        let outcome = merged.merge(other, bringing: brought, of: Self.columns)
        #expect(seen(merged) == seen(expected))
        #expect(outcome.isAlive == merged.isAlive && outcome.wasAlive == before.isAlive)
        for column in outcome.won {
            #expect(merged.stamp(of: column) != before.stamp(of: column))
            #expect(merged.stamp(of: column) == other.exceptions[column] ?? other.inserted)
        }
        // Merging again changes nothing.
        let once = merged
        #expect(merged.merge(other, bringing: brought, of: Self.columns).won == [])
        #expect(merged == once)
    }
}
