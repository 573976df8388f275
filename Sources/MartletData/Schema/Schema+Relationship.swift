extension Schema {
    /// How two entities belong together.
    public struct Relationship: Sendable, Codable {
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
        public struct Option: Sendable, Hashable, Codable, RawRepresentable {
            public let rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }
            /// Accepted, and without effect.
            public static let unique = Option(rawValue: "unique")
        }

        // The key paths are of this program, and not written down.
        private enum CodingKeys: String, CodingKey {
            case name, options, deleteRule, minimumModelCount, maximumModelCount, hashModifier
            case destination, inverseName, isToOneRelationship, isOptional
            case formerName = "originalName"
            case value = "valueType"
        }

        /// The property's name. Empty before it belongs to an entity.
        public var name = ""
        public var options: [Option]
        public var deleteRule: DeleteRule
        public var minimumModelCount: Int
        /// 0 is no limit.
        public var maximumModelCount: Int
        public var hashModifier: String?
        /// The name in the version before, where it was another one.
        var formerName: String?
        /// The name of the entity that it leads to.
        public var destination = ""
        /// The property of the other end, declared or found. Absent where there is none.
        public var inverseName: String?
        public internal(set) var isToOneRelationship = true
        public var isOptional = false
        // Safe because key paths are immutable. Absent in what was read from a file.
        nonisolated(unsafe) public internal(set) var keypath: AnyKeyPath?
        /// The other end as it was declared, until the relationship belongs to an entity; then as it was declared or
        /// found.
        nonisolated(unsafe) public internal(set) var inverseKeyPath: AnyKeyPath?
        private var value = StoredType()
        /// The property's type, an optional one included. Void before it belongs to an entity, and in a schema that was
        /// read.
        public var valueType: any Any.Type {
            get { value.type }
            set { value = StoredType(newValue) }
        }

        public init(
            _ options: Option..., deleteRule: DeleteRule = .nullify, minimumModelCount: Int? = 0,
            maximumModelCount: Int? = 0, originalName: String? = nil, inverse: AnyKeyPath? = nil,
            hashModifier: String? = nil
        ) {
            self.options = options
            self.deleteRule = deleteRule
            self.minimumModelCount = minimumModelCount ?? 0
            self.maximumModelCount = maximumModelCount ?? 0
            self.hashModifier = hashModifier
            formerName = originalName
            inverseKeyPath = inverse
        }
    }

    /// Attributes that are unique together, or have an index.
    public enum Constraint: Sendable, Hashable {
        case unique([String])
        case index([String])
    }
}
