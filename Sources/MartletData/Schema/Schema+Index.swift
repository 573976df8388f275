extension Schema {
    /// The indexes of a model: `#Index` as a value.
    public final class Index<T: PersistentModel>: @unchecked Sendable {  // safe because key paths are immutable
        /// An index with its kind.
        public enum Types<P: PersistentModel>: @unchecked Sendable {
            /// For equality, order and ranges.
            case binary([PartialKeyPath<P>])
            /// For areas. Treated as a binary index here.
            case rtree([PartialKeyPath<P>])
        }

        public let indices: [Types<T>]

        public init(_ indices: Types<T>...) { self.indices = indices }
        public init(_ binaryIndices: [PartialKeyPath<T>]...) { indices = binaryIndices.map { .binary($0) } }
    }

    /// The attributes that are unique together: `#Unique` as a value.
    public final class Unique<T: PersistentModel>: @unchecked Sendable {  // safe because key paths are immutable
        public let constraints: [[PartialKeyPath<T>]]

        public init(_ constraints: [PartialKeyPath<T>]...) { self.constraints = constraints }
    }
}
