public import MartletStore

/// What several stores have differently.
public struct StoreComparison: Sendable, Equatable {
    /// One of the stores.
    public struct Member: Sendable, Equatable {
        public var path: String
        public var node: NodeID
        public var name: String
        /// Transactions that another one has and this one doesn't, by origin. It gets them from the topic.
        public var missing: [Missing] = []
        /// Rows that were changed and have no clocks yet: they are not compared.
        public var uncheckedRowCount = 0
    }

    public struct Missing: Sendable, Equatable {
        public var origin: NodeID
        public var originName: String
        public var count: Int64
    }

    public struct Table: Sendable, Equatable {
        public var name: String
        /// In the order of the stores. Nil where the store does not track the table.
        public var rowCounts: [Int?]
        /// Rows and columns that differ although a store has all that the other one knows.
        public var divergentCount = 0
        /// Rows and columns of which a store has not heard yet.
        public var behindCount = 0
        /// Rows that only some stores have, and that were there before they were tracked. Nobody was ever told of them.
        public var unpublishedCount = 0
        /// Why it was not compared.
        public var skipped: String?
        /// What the stores know and don't show, by reason. Empty where nothing waits.
        public var waiting: [Waiting] = []
    }

    /// Rows that wait outside of their table, and values that wait for their column, for one reason. In the order of
    /// the stores.
    public struct Waiting: Sendable, Equatable {
        public var reason: ParkReason
        public var rowCounts: [Int]
        public var valueCounts: [Int]
    }

    public enum Kind: String, Sendable, CaseIterable {
        /// The stores should agree, and don't.
        case divergent
        /// The other state is on its way.
        case behind
        /// A row from before the table was tracked, which was never published.
        case unpublished
    }

    /// A row, or a column of one, that is not the same everywhere.
    public struct Difference: Sendable, Equatable {
        public var kind: Kind
        public var table: String
        public var identity: StableID
        /// Nil: whether the row is there.
        public var column: String?
        /// In the order of the stores. Nil where nothing is known.
        public var states: [State?]
    }

    public struct State: Sendable, Equatable {
        public var stamp: Stamp
        /// The column's value. Nil for a row.
        public var value: Value?
        /// False for a row that was deleted.
        public var isThere = true
        /// Why it waits, and is not shown. Nil where it is.
        public var waits: ParkReason?
    }

    public var members: [Member]
    public var tables: [Table] = []
    /// The first of them, those that are divergent before others.
    public var differences: [Difference] = []

    /// True where nothing differs that should not.
    public var isSound: Bool { tables.allSatisfy { $0.divergentCount == 0 } }
}

/// What the registers of one row come to in several stores. Pure.
struct RowJudge {
    /// Which transactions each store has.
    let vectors: [VersionVector]

    struct Register: Equatable {
        var stamp: Stamp
        var value: Value?
        var isThere = true

        /// The same, for a column that was a reference: an integer is the number of a row in its store, and another one
        /// elsewhere.
        var withoutNumber: Register {
            var register = self
            if value?.isInteger ?? false { register.value = nil }
            return register
        }
    }

    /// - Returns: nil where all are the same.
    func judge(_ registers: [Register?]) -> StoreComparison.Kind? {
        guard registers.contains(where: { $0 != registers[0] }) else { return nil }
        guard let newest = registers.compactMap({ $0?.stamp }).max() else { return nil }
        let holders = registers.indices.filter { registers[$0]?.stamp == newest }
        if holders.contains(where: { registers[$0] != registers[holders[0]] }) { return .divergent }
        guard newest != .zero else { return .unpublished }
        let late = registers.indices.filter { !holders.contains($0) }
        // Whoever has all that the holder has of the author should have this, too.
        let isDivergent = late.contains { late in
            holders.contains { vectors[late].covers(vectors[$0], of: newest.node) }
        }
        return isDivergent ? .divergent : .behind
    }
}
