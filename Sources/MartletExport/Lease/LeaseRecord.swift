package import Foundation
package import MartletCore

/// What an exporter says of itself on the topic for that: it begins to export, goes on, or ends.
package struct LeaseRecord: Equatable, Sendable, Codable {
    /// Ascends with each exporter that begins.
    package var term: Int64
    /// The first term since which no other node has exported.
    package var since: Int64
    package var node: NodeID
    /// The node's name for people.
    package var name: String
    /// Identifies one run of an exporter.
    package var instance: UUID
    /// The number of this record among those of the run.
    package var beat: Int64
    /// True if it claims the term. False if its exporter has the term already, and renews it or gives it back.
    package var isClaim: Bool
    /// True once it has ended.
    package var isReleased: Bool

    package init(
        term: Int64, since: Int64, node: NodeID, name: String, instance: UUID, beat: Int64, isClaim: Bool,
        isReleased: Bool = false
    ) {
        self.term = term
        self.since = since
        self.node = node
        self.name = name
        self.instance = instance
        self.beat = beat
        self.isClaim = isClaim
        self.isReleased = isReleased
    }

    private enum CodingKeys: String, CodingKey {
        case term, since, node, name, instance, beat
        case isClaim = "claim"
        case isReleased = "released"
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let terms = 1...Int64.max >> 1
        /// Decoded as an integer, some numbers end the process (seen with Swift 6.3).
        func number(_ key: CodingKeys) throws -> Int64? { Int64("\(try values.decode(Decimal.self, forKey: key))") }
        guard let term = try number(.term), let since = try number(.since), let beat = try number(.beat),
            terms.contains(term), terms.contains(since), since <= term, terms.contains(beat)
        else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "a number is out of range"))
        }
        (self.term, self.since, self.beat) = (term, since, beat)
        node = NodeID(try values.decode(UUID.self, forKey: .node))
        name = String(try values.decode(String.self, forKey: .name).prefix(256))
        instance = try values.decode(UUID.self, forKey: .instance)
        isClaim = try values.decode(Bool.self, forKey: .isClaim)
        isReleased = try values.decode(Bool.self, forKey: .isReleased)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(term, forKey: .term)
        try values.encode(since, forKey: .since)
        try values.encode(node.uuid, forKey: .node)
        try values.encode(name, forKey: .name)
        try values.encode(instance, forKey: .instance)
        try values.encode(beat, forKey: .beat)
        try values.encode(isClaim, forKey: .isClaim)
        try values.encode(isReleased, forKey: .isReleased)
    }
}
