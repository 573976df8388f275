import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The rules of anti-entropy checks that need no messages.
@Suite struct AntiEntropyRuleTests {
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
        let lab = try Lab("CREATE TABLE t(id INTEGER PRIMARY KEY, c)")
        let entity = try lab.node("a").entity("t")
        #expect(entity.columns.map(\.slot) == [1])
        let shape = RecordShape(entity)
        var moved = sampleRow(5)
        moved.localID = 42
        #expect(shape.hash(sampleRow(5)) == shape.hash(moved))
        #expect(shape.hash(sampleRow(5)) != shape.hash(sampleRow(6)))
        #expect(shape.hash(sampleRow(5)) != shape.hash(sampleRow(5, [1: .null])))
        #expect(shape.hash(sampleRow(nil, deleted: 5, [:])) != shape.hash(sampleRow(5)))
        #expect(shape.hash(sampleRow(0)) == nil && shape.hash(sampleRow(0), countsUnclocked: true) != nil)
        #expect(RowClocks(inserted: .zero).isAlive)
    }
}
