import Foundation
import GRDB
public import MartletStore

/// All that was committed in a store up to one moment, on its way to the broker and to other nodes.
///
/// An agent must run on the store: it notes there what was acknowledged, and asks other nodes for word on the topic for
/// checks. One must run on each of those, too, all with `check.interval` above zero.
public struct Delivery: Sendable {
    /// Who is to have it.
    public enum Receivers: Sendable, Equatable {
        /// The broker alone: it need not be applied anywhere.
        case broker
        /// Each by its name or its ID.
        case nodes([String])
        /// All others that were heard of in the last seven days; at least one.
        case all
    }

    /// A node that does not have all of it yet, as far as is known.
    public struct Missing: Sendable, Equatable, CustomStringConvertible {
        /// Its name, or its ID where it has none, or what it was called in the question where no node of the name is
        /// known.
        public var node: String
        /// False where no such node has been heard of.
        public var isKnown: Bool
        /// How many transactions of this node it lacks, by its last word. Nil where it has given none.
        public var count: Int64?

        public var description: String {
            guard isKnown else { return "\(node) (unknown here)" }
            guard let count else { return "\(node) (has not answered)" }
            return "\(node) (lacks \(count) transaction\(count == 1 ? "" : "s"))"
        }
    }

    private let receivers: Receivers
    private var publication: Publication
    private var askedAt: ContinuousClock.Instant?
    /// How long to wait for an answer before it is asked again: the question may have come before the node listened,
    /// and an answer may be lost with the node that was about to give it.
    private var pause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(10)

    /// - Parameters:
    ///   - store: may be open for reading alone here.
    ///   - receivers: who is to have it.
    ///   - token: the last transaction that it is about, as ``/MartletStore/Store/writeTransaction(author:context:_:)``
    ///     returns it. Nil: what the store
    ///     has now. What was committed soon after it may be waited for as well.
    /// - Throws: ``/MartletCore/StoreError`` where the store can't be read; `.historyTokenExpired` where the token is
    ///   of another store, or of a later state of this one.
    public init(_ store: Store, to receivers: Receivers, through token: HistoryToken? = nil) throws {
        publication = try Publication(store, through: token)
        self.receivers = receivers
    }

    /// Which nodes lack something of it, as far as the store knows. It has others asked for word, again after one
    /// second, two, four, eight and then each ten: the store must be open for writing, unless the broker alone is to
    /// have it.
    ///
    /// - Returns: nil where it has not all been published; none where each has all of it.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` where a name is that of several nodes, or of
    ///   this one.
    public mutating func missing(_ store: Store) throws -> [Missing]? { try missing(store, at: .now) }

    /// The same at a time that a test decides.
    mutating func missing(_ store: Store, at now: ContinuousClock.Instant) throws -> [Missing]? {
        guard try publication.isAcknowledged(store), let sequence = publication.sequence else { return nil }
        let missing = try store.read { db in try found(db, sequence) }
        guard !missing.isEmpty else { return [] }
        if askedAt.map({ now - $0 >= pause }) ?? true {
            if askedAt != nil { pause = min(pause * 2, Self.longestPause) }
            try store.writeOwnTables { db in
                let last = try Meta.integer(db, SyncMeta.answerWanted) ?? 0
                try Meta.set(db, SyncMeta.answerWanted, max(last + 1, WallClock.milliseconds))
            }
            askedAt = now
        }
        return missing
    }

    private struct Node {
        var id: NodeID
        var name: String?
        var delivered: Int64?
        var heard: Int64
    }

    private func found(_ db: Database, _ sequence: Int64) throws -> [Missing] {
        let own = try Meta.text(db, SyncMeta.node)
        let all = try Row.fetchAll(
            db,
            sql: """
                SELECT n.uuid, n.name, d.value AS delivered, max(ifnull(m.heard, 0), ifnull(o.at, 0)) AS heard
                FROM \(InternalName.nodes) AS n LEFT JOIN _martlet_members AS m ON m.node = n.id
                LEFT JOIN \(InternalName.meta) AS o ON o.key = \(ReadProgress.originKey("n.id"))
                LEFT JOIN \(InternalName.meta) AS d ON d.key = '\(SyncMeta.delivered)' || n.id ORDER BY n.id
                """
        ).compactMap { row in
            NodeID(bytes: row["uuid"] as Data).map {
                Node(id: $0, name: row["name"], delivered: row["delivered"], heard: row["heard"])
            }
        }.filter { $0.id != .none }
        let nodes = all.filter { $0.id.description != own }
        switch receivers {
        case .broker: return []
        case .all:
            let since = WallClock.milliseconds - Int64(Checker.presence / .milliseconds(1))
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

    private func missing(_ node: Node, _ sequence: Int64) -> Missing? {
        let name = node.name.flatMap { $0.isEmpty ? nil : $0 } ?? node.id.description
        guard let delivered = node.delivered else { return Missing(node: name, isKnown: true) }
        return delivered >= sequence ? nil : Missing(node: name, isKnown: true, count: sequence - delivered)
    }
}

extension SyncEngine {
    /// When somebody last asked for word of others. 0 where nobody has.
    func answerWanted() throws -> Int64 { try read { try Meta.integer($0, SyncMeta.answerWanted) ?? 0 } }
}
