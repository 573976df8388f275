import Crypto
import Foundation

/// How much of a message the quarantine keeps. Part of the on-disk format.
enum KeptPart: Int64 {
    /// All of it.
    case whole = 0
    /// The first bytes of its payload, and a digest of all of it.
    case beginning = 1
    /// Nothing: the entry counts messages for which there was no room.
    case none = 2
    /// Nothing: the bus could not read it.
    case unreadable = 3
}

/// A message on its way into the quarantine, with as much of it as may be kept (docs/decisions/0029).
struct KeptMessage {
    /// More than any header has that Martlet writes.
    private static let maxHeaderBytes = 512
    private static let maxHeaderCount = 32
    private static let maxKeyBytes = 1024
    private static let maxReasonBytes = 1000
    /// What an entry takes beside its contents, with its place in indexes.
    static let overheadBytes = 300

    var reason: String
    /// One in a line.
    let headers: String
    let key: [UInt8]?
    private(set) var payload: [UInt8]
    private let cut: PayloadCut?
    private(set) var part = KeptPart.whole
    /// Of the payload, where not all of it is kept.
    private(set) var byteCount: Int?
    private(set) var digest: [UInt8]?

    /// - Parameter cut: where the payload is only the beginning.
    init(reason: String, headers: [MessageHeader], key: [UInt8]?, payload: [UInt8], cut: PayloadCut? = nil) {
        self.reason = Self.cut(reason, Self.maxReasonBytes)
        self.headers = headers.prefix(Self.maxHeaderCount).map { header in
            let line = "\(header.name)=\(String(decoding: header.value.prefix(Self.maxHeaderBytes), as: UTF8.self))"
            // A line of its own is another header.
            return Self.cut(line, Self.maxHeaderBytes).replacing("\n", with: " ")
        }.joined(separator: "\n")
        self.key = key.map { Array($0.prefix(Self.maxKeyBytes)) }
        self.payload = payload
        self.cut = cut
    }

    /// What stands for messages that the bus could not read.
    mutating func noteUnreadable() { part = .unreadable }

    /// What it takes in the store.
    var storedBytes: Int {
        Self.overheadBytes + payload.count + headers.utf8.count + reason.utf8.count + (key?.count ?? 0)
    }

    /// Keeps no more than the beginning of the payload, and says why.
    mutating func keepBeginning(_ why: String) {
        guard part == .whole, cut != nil || payload.count > PayloadCut.beginningBytes else { return }
        let all = all
        part = .beginning
        byteCount = all.byteCount
        digest = all.digest
        payload = Array(payload.prefix(PayloadCut.beginningBytes))
        reason = "\(reason) Only the first \(payload.count) of \(all.byteCount) bytes are kept: \(why)"
    }

    /// The payload as it came.
    var all: PayloadCut {
        cut ?? PayloadCut(byteCount: byteCount ?? payload.count, digest: digest ?? Self.digest(of: payload))
    }

    static func digest(of bytes: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: bytes)) }

    private static func cut(_ text: String, _ bytes: Int) -> String {
        text.utf8.count <= bytes ? text : String(decoding: text.utf8.prefix(bytes), as: UTF8.self) + "…"
    }
}
