package import MartletCore
import MartletMerge
public import MartletReplica
public import MartletStore

/// The differences between several stores.
public struct StoreComparison: Sendable, Equatable {
    /// One of the stores.
    public struct Member: Sendable, Equatable {
        public var path: String
        public var node: NodeID
        public var name: String
        /// Transactions that another store has and this one lacks, by origin. This store gets them from the topic.
        public var missing: [Missing] = []
        /// Changed rows that have no clocks yet. They are not compared.
        public var uncheckedRowCount = 0
    }

    public struct Missing: Sendable, Equatable {
        public var origin: NodeID
        public var originName: String
        public var count: Int64
    }

    public struct Table: Sendable, Equatable {
        public var name: String
        /// In the order of the stores. Nil if a store does not track the table.
        public var rowCounts: [Int?]
        /// Rows and columns that differ although a store has everything that the other one knows.
        public var divergentCount = 0
        /// Rows and columns that a store has not received yet.
        public var behindCount = 0
        /// Rows that only some stores have, from before the table was tracked. They were never published.
        public var unpublishedCount = 0
        /// The reason why the table was not compared.
        public var skipped: String?
        /// Pending rows and values, which the stores know but don't show, by reason. Empty if there are none.
        public var waiting: [Waiting] = []
    }

    /// Rows that are pending outside of their table, and values that are pending for their column, for one reason. In
    /// the order of the stores.
    public struct Waiting: Sendable, Equatable {
        public var reason: ParkReason
        public var rowCounts: [Int]
        public var valueCounts: [Int]

        package init(reason: ParkReason, rowCounts: [Int], valueCounts: [Int]) {
            self.reason = reason
            self.rowCounts = rowCounts
            self.valueCounts = valueCounts
        }
    }

    public enum Kind: String, Sendable, CaseIterable {
        /// The stores should agree, and don't.
        case divergent
        /// The other state is still on its way.
        case behind
        /// A row from before the table was tracked, which was never published.
        case unpublished
    }

    /// A row, or a column of one, that is not the same in all stores.
    public struct Difference: Sendable, Equatable {
        public var kind: Kind
        public var table: String
        public var identity: StableID
        /// The column. Nil if the difference is whether the row exists.
        public var column: String?
        /// In the order of the stores. Nil if a store knows nothing.
        public var states: [State?]
    }

    public struct State: Sendable, Equatable {
        public var stamp: Stamp
        /// The column's value. Nil for a row.
        public var value: Value?
        /// False for a row that was deleted.
        public var isThere = true
        /// The reason why the state is pending, and not shown. Nil if it is shown.
        public var waits: ParkReason?
    }

    public var members: [Member]
    public var tables: [Table] = []
    /// The first differences, with divergent ones before others.
    public var differences: [Difference] = []

    /// True if no store diverges.
    public var isSound: Bool { tables.allSatisfy { $0.divergentCount == 0 } }
}

/// Judges the registers of one row in several stores. Pure.
struct RowJudge {
    /// Which transactions each store has.
    let vectors: [VersionVector]

    struct Register: Equatable {
        var stamp: Stamp
        var value: Value?
        var isThere = true

        /// The register without the value, for a column that was a reference: an integer there is the number of a row
        /// in its store, and a different one elsewhere.
        var withoutNumber: Register {
            var register = self
            if value?.isInteger ?? false { register.value = nil }
            return register
        }
    }

    /// - Returns: nil if all are the same.
    func judge(_ registers: [Register?]) -> StoreComparison.Kind? {
        guard registers.contains(where: { $0 != registers[0] }) else { return nil }
        guard let newest = registers.compactMap({ $0?.stamp }).max() else { return nil }
        let holders = registers.indices.filter { registers[$0]?.stamp == newest }
        if holders.contains(where: { registers[$0] != registers[holders[0]] }) { return .divergent }
        guard newest != .zero else { return .unpublished }
        let late = registers.indices.filter { !holders.contains($0) }
        // A store that has everything that the holder has of the author should have this, too.
        let isDivergent = late.contains { late in
            holders.contains { vectors[late].covers(vectors[$0], of: newest.node) }
        }
        return isDivergent ? .divergent : .behind
    }
}
