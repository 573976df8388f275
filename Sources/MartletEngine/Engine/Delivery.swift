import Foundation
import GRDB
import MartletCore
package import MartletReplica
public import MartletStore

/// Everything that was committed in a store up to one moment, on its way to the broker and to other nodes.
///
/// An agent must run on the store: it records there what the broker has acknowledged, and requests reports from other
/// nodes on the topic for checks. An agent must also run on each of those nodes. All of them need `check.interval`
/// above zero.
public struct Delivery: Sendable {
    /// Who must have received the delivery.
    public enum Receivers: Sendable, Equatable {
        /// The broker alone: no node needs to have applied it.
        case broker
        /// These nodes, each given by its name or ID.
        case nodes([String])
        /// All other nodes that were heard of in the last seven days; at least one.
        case all
    }

    /// A node that, as far as is known, does not have everything yet.
    public struct Missing: Sendable, Equatable, CustomStringConvertible {
        /// The node's name, or its ID if it has no name. If no such node is known, the name that the caller gave.
        public var node: String
        /// False if no such node has been heard of.
        public var isKnown: Bool
        /// How many transactions of this node it lacks, by its last report. Nil if it has sent none.
        public var count: Int64?

        package init(node: String, isKnown: Bool, count: Int64? = nil) {
            self.node = node
            self.isKnown = isKnown
            self.count = count
        }

        public var description: String {
            guard isKnown else { return "\(node) (unknown here)" }
            guard let count else { return "\(node) (has not answered)" }
            return "\(node) (lacks \(count) transaction\(count == 1 ? "" : "s"))"
        }
    }

    /// How long a node counts as one that takes part after it was last heard of.
    package static let presence = Duration.seconds(7 * 86_400)

    private let receivers: Receivers
    private var publication: Publication
    private var askedAt: ContinuousClock.Instant?
    /// How long to wait for an answer before asking again: the request may have arrived before the node listened, and
    /// an answer may be lost if the node stops while it answers.
    private var backoff = Backoff(from: .seconds(1), to: .seconds(10))

    /// - Parameters:
    ///   - store: may be read-only for this call.
    ///   - receivers: who must receive it.
    ///   - token: the last transaction to deliver, as ``/MartletStore/Store/writeTransaction(author:context:_:)``
    ///     returns it. Nil: everything that the store has now; the wait may then include what is committed soon after.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be read; `.historyTokenExpired` if the token belongs to
    ///   another store, or to a later state of this one.
    public init(_ store: Store, to receivers: Receivers, through token: HistoryToken? = nil) throws {
        publication = try Publication(store, through: token)
        self.receivers = receivers
    }

    /// Returns the nodes that, as far as the store knows, still lack something. Requests reports from other nodes, at
    /// once, and again after one second, two, four, eight, and then every ten; later, while another program keeps the
    /// store locked. The store must therefore be writable, unless only the broker is to receive the delivery.
    ///
    /// - Returns: nil while not everything has been published; an empty array once every receiver has everything.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if a name belongs to several nodes, or to
    ///   this one.
    public mutating func missing(_ store: Store) throws -> [Missing]? { try missing(store, at: .now) }

    /// The same, with the time given by a test.
    package mutating func missing(_ store: Store, at now: ContinuousClock.Instant) throws -> [Missing]? {
        guard try publication.isAcknowledged(store), let sequence = publication.sequence else { return nil }
        let missing = try store.read { db in try found(db, sequence) }
        guard !missing.isEmpty else { return [] }
        if askedAt.map({ now - $0 >= backoff.delay }) ?? true, try ask(store) {
            backoff.fail()
            askedAt = now
        }
        return missing
    }

    /// - Returns: false if somebody else keeps the store locked. Then the next look asks.
    private func ask(_ store: Store) throws -> Bool {
        do {
            try store.writeOwnTables { db in
                let last = try Meta.integer(db, SyncMeta.answerWanted) ?? 0
                try Meta.set(db, SyncMeta.answerWanted, max(last + 1, WallClock.milliseconds))
            }
            return true
        } catch let error as StoreError where error.code == .busy {
            return false
        }
    }

    private func found(_ db: Database, _ sequence: Int64) throws -> [Missing] {
        let own = try Meta.text(db, SyncMeta.node)
        let all = try Members.recipients(db).filter { $0.id != .none }
        let nodes = all.filter { $0.id.description != own }
        switch receivers {
        case .broker: return []
        case .all:
            let since = WallClock.milliseconds - Self.presence.wholeMilliseconds
            let present = nodes.filter { $0.heard > since }
            guard !present.isEmpty else { return [Missing(node: "another node", isKnown: false)] }
            return present.compactMap { missing($0, sequence) }
        case .nodes(let names):
            return try names.compactMap { name in
                let named = all.filter { $0.name == name || $0.id.description.lowercased() == name.lowercased() }
                guard named.count < 2 else {
                    throw StoreError(
                        .invalidArgument, "\(named.count) nodes have the name \(name).",
                        hint: "Use an ID instead, one of \(named.map(\.id.description).joined(separator: ", ")).")
                }
                guard let node = named.first else { return Missing(node: name, isKnown: false) }
                guard node.id.description != own else {
                    throw StoreError(
                        .invalidArgument, "\(name) is this node.",
                        hint: "Its own commits are applied here: name other nodes, or wait until they are published."
                    )
                }
                return missing(node, sequence)
            }
        }
    }

    private func missing(_ node: Members.Recipient, _ sequence: Int64) -> Missing? {
        let name = node.name.flatMap { $0.isEmpty ? nil : $0 } ?? node.id.description
        guard let delivered = node.delivered else { return Missing(node: name, isKnown: true) }
        return delivered >= sequence ? nil : Missing(node: name, isKnown: true, count: sequence - delivered)
    }
}

extension Delivery {
    /// Returns when reports of other nodes were last requested, or 0 if they never were.
    package static func answerWanted(_ session: ReplicaSession) throws -> Int64 {
        try session.read { try Meta.integer($0, SyncMeta.answerWanted) ?? 0 }
    }
}
