import MartletStore

extension Schema {
    /// The description of an attribute.
    ///
    /// Equality ignores default values.
    public struct Attribute: Sendable, Codable {
        /// An option of an attribute.
        public struct Option: Sendable, Hashable {
            fileprivate enum Kind: Hashable, Sendable {
                case unique, preserveValueOnDeletion, externalStorage, ephemeral, spotlight, allowsCloudEncryption,
                    codable
                case transformer(StoredType)
                case transformerName(String)
            }

            fileprivate let kind: Kind

            /// No two models of the entity have the same value.
            public static let unique = Option(kind: .unique)
            /// The history keeps the value of a deleted model in its tombstone.
            public static let preserveValueOnDeletion = Option(kind: .preserveValueOnDeletion)
            /// Accepted, without effect: SQLite stores large values well.
            public static let externalStorage = Option(kind: .externalStorage)
            /// In memory only.
            public static let ephemeral = Option(kind: .ephemeral)
            /// Accepted, without effect.
            public static let spotlight = Option(kind: .spotlight)
            /// Accepted, without effect.
            public static let allowsCloudEncryption = Option(kind: .allowsCloudEncryption)
            /// Stored as the data that a transformer produces from the value, which may have any type.
            public static func transformable(by transformerType: ValueTransformer.Type) -> Option {
                Option(kind: .transformer(StoredType(transformerType)))
            }
            /// The same, with a transformer that was registered under a name before the first value is set or read.
            public static func transformable(by transformerName: String) -> Option {
                Option(kind: .transformerName(transformerName))
            }
            /// Stored as JSON. Codable types that SQLite doesn't know are stored as JSON anyway.
            public static let codable = Option(kind: .codable)

            /// Nil if the option isn't a transformer, or refers to a class that this program doesn't have.
            var transformer: ValueTransformerReference? {
                switch kind {
                case .transformer(let type): (type.type as? ValueTransformer.Type).map { ValueTransformerReference($0) }
                case .transformerName(let name): ValueTransformerReference(name)
                default: nil
                }
            }

            var isTransformable: Bool {
                switch kind {
                case .transformer, .transformerName: true
                default: false
                }
            }
        }

        private enum CodingKeys: String, CodingKey {
            case name, options, isOptional, hashModifier
            case formerName = "originalName"
            case value = "valueType"
            case stored = "defaultValue"
        }

        public var options: [Option]
        /// The property's name. Empty until it belongs to an entity.
        public var name = ""
        public var isOptional = false
        public var hashModifier: String?
        /// The name in the previous version, if it was different.
        var formerName: String?
        private var value = StoredType()
        /// The default value in its column form.
        var stored: StoredDefault?

        /// The property's type, including its optionality. Void until it belongs to an entity, and for the program's
        /// own types in a schema that was read from a file.
        public var valueType: any Any.Type {
            get { value.type }
            set { value = StoredType(newValue) }
        }

        /// The value for a model whose row lacks the attribute. Nil if its type is unknown or can't be stored.
        public var defaultValue: Any? {
            get { stored.flatMap { type?.load($0.value) } }
            set { stored = newValue.flatMap { try? type?.store($0) }.map { StoredDefault(value: $0) } }
        }

        public init(_ options: Option..., originalName: String? = nil, hashModifier: String? = nil) {
            self.options = options
            formerName = originalName
            self.hashModifier = hashModifier
        }

        /// Creates an attribute of an entity that is described without its model.
        public init(
            name: String, originalName: String? = nil, options: [Option] = [], valueType: any Any.Type,
            defaultValue: Any? = nil, hashModifier: String? = nil
        ) {
            self.name = name
            self.options = options
            self.hashModifier = hashModifier
            formerName = originalName
            value = StoredType(valueType)
            isOptional = valueType is any OptionalType.Type
            self.defaultValue = defaultValue
        }

        public var isUnique: Bool { options.contains(.unique) }
        var preservesValue: Bool { options.contains(.preserveValueOnDeletion) }
        var isEphemeral: Bool { options.contains(.ephemeral) }
        var transformer: ValueTransformerReference? { options.lazy.compactMap(\.transformer).first }
        private var type: AttributeType? {
            transformer.map { .transformed(valueType, by: $0) } ?? AttributeType.of(valueType)
        }
    }
}

extension Schema.Attribute: Hashable {
    public static func == (a: Self, b: Self) -> Bool {
        a.name == b.name && a.options == b.options && a.isOptional == b.isOptional && a.value == b.value
            && a.formerName == b.formerName && a.hashModifier == b.hashModifier
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(options)
    }
}

extension Schema.Attribute: CustomDebugStringConvertible {
    public var debugDescription: String { "\(name): \(valueType)" }
}

extension Schema.Attribute.Option: Codable {
    private static let plain: [String: Self] = [
        "unique": .unique, "preserveValueOnDeletion": .preserveValueOnDeletion, "externalStorage": .externalStorage,
        "ephemeral": .ephemeral, "spotlight": .spotlight, "allowsCloudEncryption": .allowsCloudEncryption,
        "codable": .codable,
    ]

    private enum Key: CodingKey { case transformer, transformerName }

    /// Decodes a text, or an object with the transformer.
    public init(from decoder: any Decoder) throws {
        if let text = try? decoder.singleValueContainer().decode(String.self) {
            guard let known = Self.plain[text] else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "There is no option \(text)."))
            }
            self = known
            return
        }
        let container = try decoder.container(keyedBy: Key.self)
        if let name = try container.decodeIfPresent(String.self, forKey: .transformerName) {
            self = Self(kind: .transformerName(name))
        } else {
            self = Self(kind: .transformer(try container.decode(StoredType.self, forKey: .transformer)))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        switch kind {
        case .transformer(let type):
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(type, forKey: .transformer)
        case .transformerName(let name):
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(name, forKey: .transformerName)
        default:
            var container = encoder.singleValueContainer()
            try container.encode("\(kind)")
        }
    }
}

/// A type that is compared and encoded by its name. Decoding restores the type only if SQLite's columns support it
/// directly: Swift's function for arbitrary names crashes on invalid names.
struct StoredType: Sendable, Hashable, Codable {
    /// Void for a decoded type that is unknown.
    let type: any Any.Type
    /// The decoded name. Nil for a type of the program.
    private let read: String?

    init(_ type: any Any.Type = Void.self) {
        self.type = type
        read = nil
    }

    init(from decoder: any Decoder) throws {
        let name = try decoder.singleValueContainer().decode(String.self)
        type = Self.known[name] ?? Void.self
        read = name
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }

    /// Computed on demand: each property of each model has a type, and few schemas are compared or encoded.
    private var name: String {
        // The names of private types contain an address.
        read ?? String(reflecting: type).replacing(/\(unknown context at \$[0-9a-f]+\)\./, with: "")
    }

    private static let known: [String: any Any.Type] = {
        func both<V: StorableAttribute>(_ type: V.Type) -> [any Any.Type] { [type, V?.self] }
        let all: [any StorableAttribute.Type] = [
            Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self, UInt32.self,
            UInt64.self, Bool.self, Double.self, Float.self, String.self, Date.self, Data.self, UUID.self, URL.self,
            Decimal.self,
        ]
        return Dictionary(
            all.flatMap { both($0) }.map { (StoredType($0).name, $0) }, uniquingKeysWith: { first, _ in first })
    }()

    static func == (a: StoredType, b: StoredType) -> Bool {
        (a.read == nil && b.read == nil && a.type == b.type) || a.name == b.name
    }
    func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A default value in its column form.
struct StoredDefault: Sendable, Codable {
    private enum Key: CodingKey { case integer, real, text, data }

    let value: Value

    init(value: Value) { self.value = value }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        if let number = try container.decodeIfPresent(Int64.self, forKey: .integer) {
            value = .integer(number)
        } else if let number = try container.decodeIfPresent(Double.self, forKey: .real) {
            value = .real(number)
        } else if let text = try container.decodeIfPresent(String.self, forKey: .text) {
            value = .text(text)
        } else if let data = try container.decodeIfPresent(Data.self, forKey: .data) {
            value = .blob(Array(data))
        } else {
            value = .null
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch value {
        case .integer(let number): try container.encode(number, forKey: .integer)
        case .real(let number): try container.encode(number, forKey: .real)
        case .text(let text): try container.encode(text, forKey: .text)
        case .blob(let bytes), .rawText(let bytes): try container.encode(Data(bytes), forKey: .data)
        case .null, .reference: break
        }
    }
}
