import Foundation
package import MartletBus
import MartletCore
package import MartletWire

/// How much of a message the quarantine keeps. Part of the on-disk format.
package enum KeptPart: Int64 {
    /// The whole message.
    case whole = 0
    /// The first bytes of the payload, and a digest of the whole payload.
    case beginning = 1
    /// Nothing: the entry counts messages for which there was no room.
    case none = 2
    /// Nothing: the bus could not read the message.
    case unreadable = 3
}

/// A message on its way into the quarantine, cut to what may be kept (docs/decisions/0029).
package struct KeptMessage {
    /// More than any header that Martlet writes.
    private static let maxHeaderBytes = 512
    private static let maxHeaderCount = 32
    private static let maxKeyBytes = 1024
    private static let maxReasonBytes = 1000
    /// The space that an entry takes beside its contents, its index entries included.
    package static let overheadBytes = 300

    package var reason: String
    /// One header a line.
    package let headers: String
    package let key: [UInt8]?
    package private(set) var payload: TransactionPayload
    private let cut: PayloadCut?
    package private(set) var part = KeptPart.whole
    /// Size of the whole payload, if only a part is kept.
    package private(set) var byteCount: Int?
    package private(set) var digest: [UInt8]?

    /// - Parameter cut: set if `payload` is only the beginning.
    package init(
        reason: String, headers: [MessageHeader], key: [UInt8]?, payload: TransactionPayload, cut: PayloadCut? = nil
    ) {
        self.reason = Self.cut(reason, Self.maxReasonBytes)
        self.headers = headers.prefix(Self.maxHeaderCount).map { header in
            let line = "\(header.name)=\(String(decoding: header.value.prefix(Self.maxHeaderBytes), as: UTF8.self))"
            // A line break would start another header.
            return Self.cut(line, Self.maxHeaderBytes).replacing("\n", with: " ")
        }.joined(separator: "\n")
        self.key = key.map { Array($0.prefix(Self.maxKeyBytes)) }
        self.payload = payload
        self.cut = cut
    }

    /// Marks the entry as one for messages that the bus could not read.
    package mutating func noteUnreadable() { part = .unreadable }

    /// The space that the message takes in the store, in bytes.
    package var storedBytes: Int {
        Self.overheadBytes + payload.count + headers.utf8.count + reason.utf8.count + (key?.count ?? 0)
    }

    /// Keeps only the beginning of the payload, and adds the reason.
    package mutating func keepBeginning(_ why: String) throws {
        guard part == .whole, cut != nil || payload.count > PayloadCut.beginningBytes else { return }
        let all = try all()
        part = .beginning
        byteCount = all.byteCount
        digest = all.digest
        payload = .whole(try payload.beginning(PayloadCut.beginningBytes))
        reason = "\(reason) Only the first \(payload.count) of \(all.byteCount) bytes are kept: \(why)"
    }

    /// Size and digest of the payload as it arrived.
    package func all() throws -> PayloadCut {
        try cut ?? PayloadCut(byteCount: byteCount ?? payload.count, digest: digest ?? payload.digest())
    }

    package static func digest(of bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { ContentDigest.sha256($0) } }

    private static func cut(_ text: String, _ bytes: Int) -> String {
        text.utf8.count <= bytes ? text : String(decoding: text.utf8.prefix(bytes), as: UTF8.self) + "…"
    }
}
