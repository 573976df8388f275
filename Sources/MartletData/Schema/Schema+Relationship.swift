extension Schema {
    /// The description of a relationship between two entities.
    public struct Relationship: Sendable, Codable {
        /// The effect of deleting a model on related models.
        public enum DeleteRule: String, Sendable, Codable {
            /// They are deleted too.
            case cascade
            /// The model can't be deleted while it has any.
            case deny
            /// They lose the reference.
            case nullify
            /// Nothing happens in memory; the store still never keeps a reference to a deleted row.
            case noAction
        }

        /// An option of a relationship.
        public struct Option: Sendable, Hashable, Codable, RawRepresentable {
            public let rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }
            /// Accepted, without effect.
            public static let unique = Option(rawValue: "unique")
        }

        // Key paths are specific to this program, and not encoded.
        private enum CodingKeys: String, CodingKey {
            case name, options, deleteRule, minimumModelCount, maximumModelCount, hashModifier
            case destination, inverseName, isToOneRelationship, isOptional
            case formerName = "originalName"
            case value = "valueType"
        }

        /// The property's name. Empty until it belongs to an entity.
        public var name = ""
        public var options: [Option]
        public var deleteRule: DeleteRule
        public var minimumModelCount: Int
        /// 0 is no limit.
        public var maximumModelCount: Int
        public var hashModifier: String?
        /// The name in the previous version, if it was different.
        var formerName: String?
        /// The name of the target entity.
        public var destination = ""
        /// The property of the other end, declared or inferred. Nil if there is none.
        public var inverseName: String?
        public internal(set) var isToOneRelationship = true
        public var isOptional = false
        // Safe because key paths are immutable. Nil if it was read from a file.
        nonisolated(unsafe) public internal(set) var keypath: AnyKeyPath?
        /// The other end: as declared, until the relationship belongs to an entity; from then on as declared or
        /// inferred.
        nonisolated(unsafe) public internal(set) var inverseKeyPath: AnyKeyPath?
        private var value = StoredType()
        /// The property's type, including its optionality. Void until it belongs to an entity, and in a schema that was
        /// read from a file.
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

    /// Attributes that are unique together, or have an index together.
    public enum Constraint: Sendable, Hashable {
        case unique([String])
        case index([String])
    }
}
