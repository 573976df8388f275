import MartletStore
import Testing

@Suite struct ClockRecordTests {
    private func read(_ bytes: [UInt8]) throws -> [String] {
        try bytes.withUnsafeBytes { bytes in
            var records: [String] = []
            try ClockRecord.forEach(in: bytes) { record in
                let clock = record.clock.map { "\($0.time) \($0.node) \(Array($0.attributes))" }
                records.append("\(record.entity) \(Array(record.identity)) \(clock ?? "gone")")
            }
            return records
        }
    }

    /// One record of each kind, with numbers of one byte and of the full length.
    private var bytes: [UInt8] {
        var bytes: [UInt8] = []
        ClockRecord.append([1, 2], of: 1, time: 3, node: 4, attributes: nil, to: &bytes)
        ClockRecord.append(gone: Array(repeating: 7, count: 300), of: 70_000, to: &bytes)
        ClockRecord.append([], of: .max, time: .min, node: .max, attributes: [8, 9], to: &bytes)
        return bytes
    }

    @Test func readingReturnsTheAppendedRecords() throws {
        let long = Array(repeating: UInt8(7), count: 300)
        #expect(
            try read(bytes) == [
                "1 [1, 2] 3 4 []", "70000 \(long) gone", "\(Int64.max) [] \(Int64.min) \(Int64.max) [8, 9]",
            ])
        #expect(try read([]).isEmpty)
    }

    @Test func readingRefusesATruncatedRecord() throws {
        let whole = try read(bytes)
        var ends: [Int] = []
        for count in 1..<bytes.count {
            do {
                let records = try read(Array(bytes.prefix(count)))
                #expect(records == Array(whole.prefix(records.count)))
                ends.append(records.count)
            } catch let error as StoreError {
                #expect(error.code == .corrupt)
            }
        }
        // Only a cut at the end of a record is no error.
        #expect(ends == [1, 2])
    }

    @Test func readingRefusesAnUnknownKindAndAnExcessiveLength() {
        #expect(throws: StoreError.self) { try read([1, 1, 5, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1]) }
        // Lengths beyond the input, up to one that exceeds any memory.
        #expect(throws: StoreError.self) { try read([1] + Array(repeating: 0xff, count: 8) + [0x7f, 0]) }
        #expect(throws: StoreError.self) { try read([1] + Array(repeating: 0xff, count: 9) + [0x01, 0]) }
    }
}
