import GRDB
public import MartletStore

/// What the synced rows of a store come to: equal on nodes that agree.
public struct StoreDigest: Sendable, Equatable {
    public struct Entity: Sendable, Equatable {
        public var name: String
        /// How many rows there are, those that are kept aside included.
        public var rowCount: Int
        /// 32 hexadecimal digits.
        public var digest: String
    }

    /// By name.
    public var entities: [Entity]
    /// One digest over all: 32 hexadecimal digits.
    public var digest: String
}

extension StoreDigest {
    /// Reads every synced row once, without writing anything.
    ///
    /// A row counts with its stable ID and its columns that are not null; references count with the stable ID of their
    /// target; the integer keys, which each node has for itself, don't count. A row that is kept aside because its
    /// target is missing counts as if it were there, since another node may show it; one that lost a unique key counts
    /// as such.
    /// - Throws: ``/MartletCore/StoreError`` when the store can't be read.
    public static func compute(_ store: Store) throws -> StoreDigest {
        try store.read { db in
            try DigestReader(db).digest()
        }
    }
}
