import GRDB
public import MartletStore

/// Digest of a store's synced rows, equal on nodes that agree.
public struct StoreDigest: Sendable, Equatable {
    public struct Entity: Sendable, Equatable {
        public var name: String
        /// The number of rows, pending ones included.
        public var rowCount: Int
        /// 32 hexadecimal digits.
        public var digest: String
    }

    /// Sorted by name.
    public var entities: [Entity]
    /// One digest over all entities: 32 hexadecimal digits.
    public var digest: String
}

extension StoreDigest {
    /// Reads every synced row once, without writing anything.
    ///
    /// A row counts with its stable ID and its columns that are not null. References count with the stable ID of their
    /// target. Integer keys, which each node assigns for itself, don't count. A row that is pending because its target
    /// is missing counts as if it were in its table, since it may be there on another node. A row that lost a unique
    /// key counts as such.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be read.
    public static func compute(_ store: Store) throws -> StoreDigest {
        try store.read { db in
            try DigestReader(db).digest()
        }
    }
}
