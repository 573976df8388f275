import Foundation
import MartletBus
import MartletCore

/// The transactions that any node has exported, as far as the topic of transactions still has their ends.
struct ExportedTransactions {
    private var sequences: [NodeID: Set<Int64>] = [:]
    private var lowest: [NodeID: Int64] = [:]
    /// When the oldest of the topic's messages came, in milliseconds since 1970. Nil if it has none.
    private(set) var since: Int64?

    mutating func note(_ message: IncomingMessage) {
        if message.timestamp >= 0 { since = min(since ?? message.timestamp, message.timestamp) }
        guard let value = try? JSONDecoder().decode(Value.self, from: Data(message.payload)),
            let event = value.payload ?? value.plain, event.status == "END"
        else { return }
        let parts = event.id.split(separator: ":")
        guard parts.count == 2, let uuid = UUID(uuidString: String(parts[0])), let sequence = Int64(parts[1]) else {
            return
        }
        let origin = NodeID(uuid)
        sequences[origin, default: []].insert(sequence)
        lowest[origin] = min(lowest[origin] ?? sequence, sequence)
    }

    /// Returns true also for transactions before the first one of their origin that the topic has: their ends have left
    /// it, or their rows were exported without them.
    func contains(_ origin: NodeID, _ sequence: Int64) -> Bool {
        guard let lowest = lowest[origin] else { return false }
        return sequence < lowest || sequences[origin]?.contains(sequence) ?? false
    }

    private struct Event: Decodable {
        var status: String
        var id: String
    }

    /// The value of a message, with or without its schema.
    private struct Value: Decodable {
        var payload: Event?
        var plain: Event?

        private enum CodingKeys: String, CodingKey { case payload }

        init(from decoder: any Decoder) throws {
            payload = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Event.self, forKey: .payload)
            plain = payload == nil ? try Event(from: decoder) : nil
        }
    }
}
