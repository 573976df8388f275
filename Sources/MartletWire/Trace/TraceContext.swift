import Crypto
import Foundation
public import MartletCore

/// The trace that a transaction belongs to, and its parent span: a `traceparent` of W3C Trace Context
/// (https://www.w3.org/TR/trace-context/).
///
/// It only helps to find a transaction in logs and traces. It is neither encrypted nor signed, and no decision depends
/// on it.
public struct TraceContext: Sendable, Hashable {
    /// 32 lowercase hexadecimal digits, not all of them 0.
    public let traceID: String
    /// The parent span: 16 lowercase hexadecimal digits, not all of them 0.
    public let spanID: String
    /// Bit 0: sampled. Bit 1: the trace ID is random.
    package let flags: UInt8

    private static let length = 55
    private static let maxLength = 256
    private static let knownFlags: UInt8 = 3

    private init(traceID: String, spanID: String, flags: UInt8) {
        self.traceID = traceID
        self.spanID = spanID
        self.flags = flags
    }

    /// Creates the trace of a transaction for which the application named none. Every node and every program computes
    /// the same one.
    ///
    /// The IDs are the first 24 bytes of a SHA-256, 16 for the trace and 8 for the span. The hashed bytes are "martlet
    /// trace 1" in ASCII, the 16 bytes of the origin's UUID, and the sequence in eight bytes, big-endian. The trace is
    /// marked as sampled, since tracers that follow their parent's decision would drop it otherwise.
    public init(origin: NodeID, sequence: Int64) {
        let number = withUnsafeBytes(of: sequence.bigEndian) { Array($0) }
        let hash = Array(SHA256.hash(data: Array("martlet trace 1".utf8) + origin.bytes + number))
        self.init(traceID: Hex.text(hash[0..<16]), spanID: Hex.text(hash[16..<24]), flags: 1)
    }

    /// Parses a `traceparent` strictly. Returns nil if it is malformed. Of versions that are not known yet, it reads
    /// the known part.
    public init?(traceparent: String) {
        guard traceparent.utf8.count <= Self.maxLength else { return nil }
        self.init(bytes: Array(traceparent.utf8))
    }

    package init?(bytes: [UInt8]) {
        let dash = UInt8(ascii: "-")
        guard bytes.count >= Self.length, bytes.count <= Self.maxLength,
            bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            let version = Self.byte(bytes[0..<2]), version != 0xff
        else { return nil }
        if bytes.count > Self.length {
            guard version > 0, bytes[Self.length] == dash else { return nil }
        }
        guard let traceID = Self.id(bytes[3..<35]), let spanID = Self.id(bytes[36..<52]),
            let flags = Self.byte(bytes[53..<55])
        else { return nil }
        self.init(traceID: traceID, spanID: spanID, flags: flags & Self.knownFlags)
    }

    /// The header value: 55 characters, version 00.
    public var traceparent: String { "00-\(traceID)-\(spanID)-\(Hex.text([flags]))" }

    /// True if the program that began the trace may have recorded it.
    public var isSampled: Bool { flags & 1 == 1 }

    private static func isDigit(_ byte: UInt8) -> Bool {
        Hex.value(byte) != nil && !(UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte)
    }

    private static func id(_ digits: ArraySlice<UInt8>) -> String? {
        guard digits.allSatisfy({ isDigit($0) }), digits.contains(where: { $0 != UInt8(ascii: "0") }) else {
            return nil
        }
        return String(decoding: digits, as: UTF8.self)
    }

    private static func byte(_ digits: ArraySlice<UInt8>) -> UInt8? {
        guard digits.allSatisfy({ isDigit($0) }) else { return nil }
        return UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
