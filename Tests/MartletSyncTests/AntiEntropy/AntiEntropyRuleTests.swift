import Foundation
import MartletSync
import Testing

@testable import MartletStore

/// The rules of anti-entropy checks that need no store.
@Suite struct AntiEntropyRuleTests {
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

    @Test func rangesHaveEvenSizesWhateverTheKeysAre() {
        var counts: [KeyRange: Int] = [:]
        for number in 0..<16_000 {
            counts[KeyRange(KeyRange.position(StableID(values: [.integer(Int64(number))])), level: 1), default: 0] += 1
        }
        #expect(counts.count == 16 && counts.values.allSatisfy { (850...1150).contains($0) })
    }

    @Test func theDigestOfARowCoversItsClocksButNotItsKey() throws {
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
