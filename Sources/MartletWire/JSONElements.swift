/// Iterates over the elements of an array that is a member of a JSON object, without decoding them.
///
/// Does not verify that the elements are valid JSON. Decoding them, and the rest of the object without them, does that.
package struct JSONElements {
    private let member: [UInt8]
    private var position = 0
    private var hasBegun = false
    /// True between the brackets of the array.
    private(set) var isInArray = false
    /// Where the element begins that was read last, or that is incomplete, with the preceding comma.
    private(set) var start = 0
    private var hasElement = false

    /// - Parameter member: the name of the member. It must not need JSON escapes.
    package init(of member: String) { self.member = Array(member.utf8) }

    /// - Returns: the range of the next element, with and without the preceding comma. Nil after the last.
    /// - Throws: ``WireError`` if the bytes are not a JSON object.
    package mutating func next(in bytes: [UInt8]) throws(WireError) -> (whole: Range<Int>, content: Range<Int>)? {
        if !hasBegun { try take(UInt8(ascii: "{"), bytes) }
        hasBegun = true
        while true {
            if !isInArray {
                guard try findArray(bytes) else { return nil }
                (isInArray, hasElement) = (true, false)
            }
            start = position
            skipSpace(bytes)
            if peek(bytes) == UInt8(ascii: "]") {
                position += 1
                isInArray = false
                continue
            }
            if hasElement { try take(UInt8(ascii: ","), bytes) } else { start = position }
            skipSpace(bytes)
            let content = position
            try skipValue(bytes)
            hasElement = true
            return (start..<position, content..<position)
        }
    }

    /// Takes into account that the first bytes, which were read, are gone.
    mutating func move(by count: Int) { position -= count }

    /// Advances past the opening bracket of the array. Returns false if the object ends first.
    private mutating func findArray(_ bytes: [UInt8]) throws(WireError) -> Bool {
        while true {
            skipSpace(bytes)
            switch peek(bytes) {
            case UInt8(ascii: ","): position += 1
            case UInt8(ascii: "}"): return false
            case UInt8(ascii: "\""):
                let start = position + 1
                try skipString(bytes)
                let isMember = bytes[start..<position - 1].elementsEqual(member)
                skipSpace(bytes)
                try take(UInt8(ascii: ":"), bytes)
                skipSpace(bytes)
                if isMember, peek(bytes) == UInt8(ascii: "[") {
                    position += 1
                    return true
                }
                try skipValue(bytes)
            default: throw Self.nonsense
            }
        }
    }

    private static let nonsense = WireError("The payload is not a transaction: it is not JSON.")

    private func peek(_ bytes: [UInt8]) -> UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8, _ bytes: [UInt8]) throws(WireError) {
        guard peek(bytes) == byte else { throw Self.nonsense }
        position += 1
    }

    private mutating func skipSpace(_ bytes: [UInt8]) {
        while let byte = peek(bytes), byte == 0x20 || (0x09...0x0D).contains(byte) { position += 1 }
    }

    private mutating func skipString(_ bytes: [UInt8]) throws(WireError) {
        try take(UInt8(ascii: "\""), bytes)
        while let byte = peek(bytes), byte != UInt8(ascii: "\"") { position += byte == UInt8(ascii: "\\") ? 2 : 1 }
        try take(UInt8(ascii: "\""), bytes)
    }

    private mutating func skipValue(_ bytes: [UInt8]) throws(WireError) {
        let start = position
        var depth = 0
        while let byte = peek(bytes) {
            switch byte {
            case UInt8(ascii: "\""): try skipString(bytes)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard depth > 0 else { return try checkValue(start) }
                depth -= 1
                position += 1
            case UInt8(ascii: ",") where depth == 0: return try checkValue(start)
            default: position += 1
            }
        }
        throw Self.nonsense
    }

    private func checkValue(_ start: Int) throws(WireError) {
        guard position > start else { throw Self.nonsense }
    }

    /// Rejects JSON that would take far more memory decoded than encoded.
    ///
    /// - Throws: ``WireError`` if it has more values than ``WireShape/maxFields``.
    package static func checkCount(_ bytes: [UInt8]) throws(WireError) {
        guard bytes.count > 2 * WireShape.maxFields else { return }
        var count = 0
        var isInString = false
        var isEscaped = false
        for byte in bytes {
            if isInString {
                if !isEscaped, byte == UInt8(ascii: "\"") { isInString = false }
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: ",") {
                count += 1
            }
        }
        guard count <= WireShape.maxFields else {
            throw WireError("The message has more than \(WireShape.maxFields) fields.")
        }
    }
}
