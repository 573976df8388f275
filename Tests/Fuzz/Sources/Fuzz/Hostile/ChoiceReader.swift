import Foundation

/// Derives choices from a fuzzer's input, byte by byte: numbers at the ends of their ranges, long lists, meaningful
/// text.
///
/// At the end of the input every choice is the first one, so that generation terminates.
struct ChoiceReader {
    private var rest: ArraySlice<UInt8>
    /// A message has one long element: nested long elements would only make it large.
    private var mayBeLong = true

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// A number below `count`, which is at most 256.
    mutating func choice(_ count: Int) -> Int { Int(byte()) % count }

    /// True once in `count` times; never at the end of the input.
    mutating func isRare(_ count: Int) -> Bool { choice(count) == count - 1 }

    mutating func beginMessage() { mayBeLong = true }

    /// True once in `count` times, and at most once in a message.
    mutating func isLong(_ count: Int) -> Bool {
        isRare(count) && takeLong()
    }

    private mutating func takeLong() -> Bool {
        defer { mayBeLong = false }
        return mayBeLong
    }

    mutating func pick<T>(_ values: [T]) -> T { values[choice(values.count)] }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }

    /// Any number, mostly at the end of a range.
    mutating func integer() -> Int64 {
        let ends: [Int64] = [
            0, 1, 2, -1, 3, 16, 1 << 16, 1 << 31 - 1, 1 << 31, 1 << 32, 1 << 47 - 1, 1 << 48 - 1, 1 << 48, 1 << 53 - 1,
            1 << 53, 1 << 62, .max - 1, .max, .min, .min + 1, -(1 << 31) - 1, -(1 << 48), -(1 << 62),
        ]
        let place = choice(ends.count + 1)
        guard place == ends.count else { return ends[place] }
        return bytes(8).reduce(0) { $0 << 8 | Int64($1) }
    }

    mutating func unsigned() -> UInt64 { UInt64(bitPattern: integer()) }

    /// A list of a few elements, or of one element many times.
    mutating func list<T>(_ most: Int = 4, long: Int = 3000, _ make: (inout ChoiceReader) -> T) -> [T] {
        let count = choice(most + 1)
        if count == most, isLong(4) { return Array(repeating: make(&self), count: long) }
        return (0..<count).map { _ in make(&self) }
    }

    mutating func data() -> Data {
        switch choice(4) {
        case 0: Data()
        case 1: Data(bytes(16))
        case 2: Data(bytes(choice(40)))
        default: Data(count: 1 << choice(takeLong() ? 19 : 9))
        }
    }

    mutating func text() -> String {
        let words = [
            "setting", "key", "value", "trip", "stop", "id", "name", "budget", "place", "", "note", "_martlet_meta",
            "sqlite_schema", "\"; DROP TABLE setting; --", "\u{0}", "ä\u{301}\u{202e}", "rowid", "t", "k",
        ]
        switch choice(8) {
        case 6: return String(repeating: pick(words), count: takeLong() ? 1 + choice(200) * 50 : 3)
        case 7: return String(decoding: bytes(choice(20)), as: UTF8.self)
        default: return pick(words)
        }
    }
}
