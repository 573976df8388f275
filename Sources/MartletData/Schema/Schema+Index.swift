extension Schema {
    /// The indexes of a model. What `#Index` says, as a value.
    public final class Index<T: PersistentModel>: @unchecked Sendable {  // safe because key paths are immutable
        /// An index, and of which kind it is.
        public enum Types<P: PersistentModel>: @unchecked Sendable {
            /// For equality, order and ranges.
            case binary([PartialKeyPath<P>])
            /// For areas. A binary one here.
            case rtree([PartialKeyPath<P>])
        }

        public let indices: [Types<T>]

        public init(_ indices: Types<T>...) { self.indices = indices }
        public init(_ binaryIndices: [PartialKeyPath<T>]...) { indices = binaryIndices.map { .binary($0) } }
    }

    /// The attributes that are unique together. What `#Unique` says, as a value.
    public final class Unique<T: PersistentModel>: @unchecked Sendable {  // safe because key paths are immutable
        public let constraints: [[PartialKeyPath<T>]]

        public init(_ constraints: [PartialKeyPath<T>]...) { self.constraints = constraints }
    }
}
