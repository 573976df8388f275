import MartletSync

/// Records every transaction that was ever sent, in the form in which it was first sent. Safe because a simulation runs
/// on one thread.
final class PublishedLog: @unchecked Sendable {
    struct Key: Hashable {
        var origin: String
        var sequence: Int64

        init?(_ headers: [MessageHeader]) {
            guard let origin = headers.text(PublishedHeader.origin),
                let sequence = headers.text(PublishedHeader.sequence).flatMap({ Int64($0) })
            else { return nil }
            self.origin = origin
            self.sequence = sequence
        }
    }

    private(set) var payloads: [Key: [UInt8]] = [:]
    private var parts: [Key: [Int: [Int: [UInt8]]]] = [:]
    /// Transactions that the broker had at some time, complete.
    private var stored: Set<Key> = []
    private var storedParts: [Key: [Int: Set<Int>]] = [:]
    /// The last problem with a sent message.
    private(set) var problem: String?

    /// Decrypts sealed messages. Nil if nothing is sealed.
    var reader: TopicReader?

    func note(_ sent: OutgoingMessage) {
        var message = sent
        if let reader {
            do {
                message.payload = try reader.payload(of: sent)
            } catch {
                problem = "a message was sent that can't be decrypted: \(error)"
                return
            }
        }
        guard let key = Key(message.headers) else {
            problem = "a message was sent without origin or sequence"
            return
        }
        guard let chunk = message.headers.text(PublishedHeader.chunk) else { return note(message.payload, key) }
        let numbers = Self.numbers(chunk)
        guard numbers.count == 2 else {
            problem = "a chunk was sent without a valid chunk header"
            return
        }
        parts[key, default: [:]][numbers[1], default: [:]][numbers[0]] = message.payload
        guard let all = parts[key]?[numbers[1]], all.count == numbers[1] else { return }
        note((0..<numbers[1]).flatMap { all[$0] ?? [] }, key)
    }

    private static func numbers(_ chunk: String) -> [Int] { chunk.split(separator: "/").compactMap { Int($0) } }

    /// Records that the broker has the message.
    func noteStored(_ message: OutgoingMessage) {
        guard let key = Key(message.headers) else { return }
        guard let chunk = message.headers.text(PublishedHeader.chunk).map(Self.numbers), chunk.count == 2 else {
            stored.insert(key)
            return
        }
        storedParts[key, default: [:]][chunk[1], default: []].insert(chunk[0])
        if storedParts[key]?[chunk[1]]?.count == chunk[1] { stored.insert(key) }
    }

    /// Forgets transactions that a node sent and the broker never received, since no copy of them is left.
    ///
    /// - Returns: the transactions that the broker received from it.
    /// - Throws: if one can't be decoded.
    func forgetUnstored(of origin: String) throws -> [PublishedTransaction] {
        payloads = payloads.filter { $0.key.origin != origin || stored.contains($0.key) }
        parts = parts.filter { $0.key.origin != origin || stored.contains($0.key) }
        return try payloads.filter { $0.key.origin == origin }.map { try PublishedTransaction(decoding: $0.value) }
    }

    private func note(_ payload: [UInt8], _ key: Key) {
        if let known = payloads[key], known != payload {
            problem = "transaction \(key.sequence) of \(key.origin) was resent with different bytes"
        }
        payloads[key] = payload
    }

    /// All transactions, in the order of origins and sequences.
    ///
    /// - Throws: if one can't be decoded.
    func transactions() throws -> [PublishedTransaction] {
        try payloads.sorted { ($0.key.origin, $0.key.sequence) < ($1.key.origin, $1.key.sequence) }
            .map { try PublishedTransaction(decoding: $0.value) }
    }
}

extension [MessageHeader] {
    fileprivate func text(_ name: String) -> String? {
        first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }
}
