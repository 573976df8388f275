extension Schema {
    /// How two entities belong together.
    public struct Relationship: Sendable {
        /// What becomes of related models when a model is deleted.
        public enum DeleteRule: String, Sendable, Codable {
            /// They are deleted too.
            case cascade
            /// The model can't be deleted while it has any.
            case deny
            /// They lose the reference.
            case nullify
            /// Nothing is done in memory; the store still never keeps a reference to a row that is gone.
            case noAction
        }

        /// What may be said about a relationship.
        public struct Option: Sendable, Hashable {
            private let name: String
            /// Accepted, and without effect.
            public static let unique = Option(name: "unique")
        }

        public let deleteRule: DeleteRule
        public let minimumModelCount: Int
        /// 0 is no limit.
        public let maximumModelCount: Int
        public let originalName: String?
        nonisolated(unsafe) let inverse: AnyKeyPath?  // safe because key paths are immutable
        public internal(set) var name = ""
        /// The name of the entity that it leads to.
        public internal(set) var destination = ""
        public internal(set) var isToOneRelationship = true
        public internal(set) var isOptional = false
        /// The property of the other end, declared or found. Absent where there is none.
        public internal(set) var inverseName: String?
        // Safe because key paths are immutable.
        nonisolated(unsafe) public internal(set) var keypath: AnyKeyPath?
        nonisolated(unsafe) public internal(set) var inverseKeyPath: AnyKeyPath?
        public var valueType: any Any.Type { keypath.map { type(of: $0).valueType } ?? Void.self }

        public init(
            _ options: Option..., deleteRule: DeleteRule = .nullify, minimumModelCount: Int? = 0,
            maximumModelCount: Int? = 0, originalName: String? = nil, inverse: AnyKeyPath? = nil,
            hashModifier: String? = nil
        ) {
            self.deleteRule = deleteRule
            self.minimumModelCount = minimumModelCount ?? 0
            self.maximumModelCount = maximumModelCount ?? 0
            self.originalName = originalName
            self.inverse = inverse
        }
    }

    /// Attributes that are unique together, or have an index.
    public enum Constraint: Sendable, Hashable {
        case unique([String])
        case index([String])
    }
}
