package import Crypto
import Foundation
public import MartletCore

/// The keys that payloads are encrypted with, each with an ID. The current key encrypts what is sent from now on; all
/// keys decrypt what is received.
///
/// The file has one key per line: its ID, its 32 bytes in Base64, and `current` on one of the lines. A line that begins
/// with `#` is a comment.
public struct KeyRing: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The ID of the key that encrypts.
    public let current: String
    package let keys: [String: SymmetricKey]

    /// The IDs of all keys, in order.
    public var ids: [String] { keys.keys.sorted() }

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument`. It names the line, but never shows a key.
    public init(parsing text: String) throws(StoreError) {
        var keys: [String: SymmetricKey] = [:]
        var current: String?
        for line in try Self.lines(text) {
            guard case .key(let number, let id, let bytes, let isCurrent) = line else { continue }
            guard keys[id] == nil else { throw Self.problem("Line \(number) repeats the key ID \(id).") }
            keys[id] = SymmetricKey(data: bytes)
            guard isCurrent else { continue }
            if let current { throw Self.problem("Keys \(current) and \(id) are both marked as current.") }
            current = id
        }
        guard !keys.isEmpty else { throw Self.problem("It has no keys.") }
        guard let current else { throw Self.problem("No key is marked as current.") }
        self.keys = keys
        self.current = current
    }

    public var description: String { "key ring with \(ids.joined(separator: ", ")); current: \(current)" }
    public var customMirror: Mirror { Mirror(self, children: ["ids": ids, "current": current]) }

    // MARK: The file

    /// Returns the text of a key ring with a new random key added.
    ///
    /// - Parameter makesCurrent: whether the new key encrypts from now on. The first key always does.
    /// - Throws: ``/MartletCore/StoreError`` if `id` is not a valid key ID, or if the text is not a key ring or already
    ///   has a key of that ID.
    public static func adding(_ id: String, makesCurrent: Bool, to text: String) throws -> String {
        guard isID(id) else {
            throw problem("\(id) is not a key ID: use 1 to 64 letters, digits, dots, dashes and underscores.")
        }
        var lines = try lines(text)
        let known = lines.compactMap(\.id)
        guard !known.contains(id) else { throw problem("It already has a key \(id).") }
        let bytes = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) }
        lines.append(.key(0, id, bytes, isCurrent: false))
        let added = lines.map(\.text).joined(separator: "\n") + "\n"
        return makesCurrent || known.isEmpty ? try using(id, in: added) : added
    }

    /// Returns the text of a key ring with another current key.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the text is not a key ring, or has no such key.
    public static func using(_ id: String, in text: String) throws -> String {
        let lines = try lines(text)
        guard lines.contains(where: { $0.id == id }) else { throw problem("It has no key \(id).") }
        return lines.map { line in
            guard case .key(let number, let other, let bytes, _) = line else { return line.text }
            return Line.key(number, other, bytes, isCurrent: other == id).text
        }.joined(separator: "\n") + "\n"
    }

    private enum Line {
        case other(String)
        case key(_ number: Int, _ id: String, _ bytes: Data, isCurrent: Bool)

        var id: String? { if case .key(_, let id, _, _) = self { id } else { nil } }

        var text: String {
            switch self {
            case .other(let text): text
            case .key(_, let id, let bytes, let isCurrent):
                "\(id) \(bytes.base64EncodedString())\(isCurrent ? " current" : "")"
            }
        }
    }

    private static func lines(_ text: String) throws(StoreError) -> [Line] {
        var lines: [Line] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
            guard let id = words.first, !id.hasPrefix("#") else {
                lines.append(.other(String(line)))
                continue
            }
            guard isID(id), (2...3).contains(words.count), words.count == 2 || words[2] == "current",
                let bytes = Data(base64Encoded: words[1]), bytes.count == 32
            else {
                throw problem("Line \(index + 1) must be an ID, 32 bytes in Base64, and `current` for one of the keys.")
            }
            lines.append(.key(index + 1, id, bytes, isCurrent: words.count == 3))
        }
        while case .other("")? = lines.last { lines.removeLast() }
        return lines
    }

    package static func isID(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "._-".utf8.contains(byte)
            }
    }

    private static func problem(_ what: String) -> StoreError {
        StoreError(
            .invalidArgument, "The key ring is invalid: \(what)",
            hint: "Create key rings and keys with `martlet key add`.")
    }
}
