import Foundation
import GRDB
import MartletCore
public import MartletEngine
import MartletReplica
import MartletStore

/// The result of repairing one store from the others.
public struct RepairReport: Sendable, Equatable {
    public var path: String
    /// Rows and columns that should have been the same, and were not.
    public var foundCount = 0
    /// Those of them that were repaired.
    public var repairedCount = 0
    @available(*, deprecated, renamed: "repairedCount")
    public var mendedCount: Int {
        get { repairedCount }
        set { repairedCount = newValue }
    }
}

extension SyncEngine {
    /// Repairs stores from each other: they exchange, with their stamps, rows that should be the same and are not.
    /// Changes that a store has yet to receive from the topic are left to it.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.copied` if two of them have the same node ID.
    public static func repair(_ engines: [SyncEngine]) throws -> [RepairReport] {
        let nodes = Set(engines.map(\.node))
        guard nodes.count == engines.count else {
            throw StoreError(
                .copied, "Two of the stores have the same node ID: one is a copy of the other, or a backup.",
                hint: "Give one a node ID of its own with `martlet fork`, or leave it out.")
        }
        var reports = engines.map { RepairReport(path: $0.path) }
        // Twice, because what one store gets from the second may be what another lacks.
        for _ in 0..<2 {
            for giver in engines {
                for index in engines.indices where engines[index].node != giver.node {
                    let found = try engines[index].takeRows(of: giver, present: nodes)
                    reports[index].foundCount += found.count
                    reports[index].repairedCount += found.filter { $0.outcome == .repaired }.count
                }
            }
        }
        return reports
    }

    @available(*, deprecated, renamed: "repair(_:)")
    public static func mend(_ engines: [SyncEngine]) throws -> [RepairReport] { try repair(engines) }

    /// The approximate number of rows that are merged in one commit.
    private static let repairingRows = 2000

    private func takeRows(of giver: SyncEngine, present: Set<NodeID>) throws -> [FoundDivergence] {
        var found: [FoundDivergence] = []
        try giver.session.readStamped { db in
            let reader = try AntiEntropyReader(db, engine: giver, topic: "")
            for (entity, ranges) in try reader.differing(from: self) {
                var group: [KeyRange] = []
                var rows = 0
                for (range, sum) in ranges {
                    group.append(range)
                    rows += sum.rows
                    guard rows >= Self.repairingRows || range == ranges.last?.range else { continue }
                    let message = try reader.rows(of: entity, group)
                    found += try AntiEntropyMerge.merge(message, into: self, present: present, needsAll: false) ?? []
                    (group, rows) = ([], 0)
                }
            }
        }
        // Values that a store keeps are not reported: each round finds them again.
        return found.filter { $0.outcome == .repaired || $0.outcome == .open }
    }
}

extension AntiEntropyReader {
    /// Returns the ranges of each table that differ in another store, with their digests here.
    fileprivate func differing(
        from other: SyncEngine
    ) throws -> [(entity: Entity, ranges: [(range: KeyRange, sum: RangeSum)])] {
        ignored = max(
            ignored, try other.session.readStamped { try AntiEntropyReader($0, engine: other, topic: "").ignored })
        let own = try sums()
        return try other.session.readStamped { db in
            let there = try AntiEntropyReader(db, engine: other, topic: "")
            there.ignored = ignored
            return try own.compactMap { entity, sums in
                guard let theirs = try there.sums(like: entity, Array(sums.keys)) else { return nil }
                let ranges = sums.filter { theirs[$0.key] != $0.value && $0.value.rows > 0 }
                    .sorted { $0.key.prefix < $1.key.prefix }
                return ranges.isEmpty ? nil : (entity, ranges.map { ($0.key, $0.value) })
            }
        }
    }
}

@available(*, deprecated, renamed: "RepairReport")
public typealias MendingReport = RepairReport
