extension Schema {
    /// How an attribute is kept.
    public struct Attribute: Sendable, Hashable {
        /// What may be said about an attribute.
        public struct Option: Sendable, Hashable {
            private enum Kind: Hashable, Sendable {
                case unique, preserveValueOnDeletion, externalStorage, ephemeral, spotlight, allowsCloudEncryption,
                    codable
                case transformable(String)
            }

            private let kind: Kind

            /// No two models of the entity have the same value.
            public static let unique = Option(kind: .unique)
            /// The history keeps the value of a deleted model in its tombstone.
            public static let preserveValueOnDeletion = Option(kind: .preserveValueOnDeletion)
            /// Accepted, and without effect: SQLite keeps large values well.
            public static let externalStorage = Option(kind: .externalStorage)
            /// Kept in memory only.
            public static let ephemeral = Option(kind: .ephemeral)
            /// Accepted, and without effect.
            public static let spotlight = Option(kind: .spotlight)
            /// Accepted, and without effect.
            public static let allowsCloudEncryption = Option(kind: .allowsCloudEncryption)
            var isTransformable: Bool { if case .transformable = kind { true } else { false } }
            /// Kept as the data that a transformer makes of the value, which may be of any type.
            public static func transformable(by transformerType: ValueTransformer.Type) -> Option {
                Option(kind: .transformable(String(reflecting: transformerType)))
            }
            /// The same with a transformer that was registered under a name before the first value is set or read.
            public static func transformable(by transformerName: String) -> Option {
                Option(kind: .transformable(transformerName))
            }
            /// Kept as JSON. What Codable types that SQLite doesn't know are anyway.
            public static let codable = Option(kind: .codable)
        }

        /// A type that can be compared.
        struct ValueType: Sendable, Hashable {
            var type: any Any.Type = Void.self
            static func == (a: ValueType, b: ValueType) -> Bool { a.type == b.type }
            func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(type)) }
        }

        public let options: [Option]
        public internal(set) var name = ""
        public internal(set) var isOptional = false
        var value = ValueType()
        public var valueType: any Any.Type { value.type }
        /// The attribute's name in the version before.
        public let originalName: String?
        public let hashModifier: String?

        public init(_ options: Option..., originalName: String? = nil, hashModifier: String? = nil) {
            self.options = options
            self.originalName = originalName
            self.hashModifier = hashModifier
        }

        public var isUnique: Bool { options.contains(.unique) }
        var preservesValue: Bool { options.contains(.preserveValueOnDeletion) }
        var isEphemeral: Bool { options.contains(.ephemeral) }
    }
}
