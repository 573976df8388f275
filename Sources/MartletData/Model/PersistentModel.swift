/// A class whose instances a ``ModelContext`` keeps in a store. Conformance comes from `@Model`.
///
/// A model belongs to one context, and is used where that context is used: it isn't Sendable. Two references are equal
/// when they are the same object; a context has one object for each row.
///
/// A class that does without the macro has ``schemaMetadata``, ``persistentBackingData`` and ``init(backingData:)``,
/// and properties that call ``getValue(forKey:)-(KeyPath<Self,Value>)`` and
/// ``setValue(forKey:to:)-(KeyPath<Self,Value>,_)``.
public protocol PersistentModel: AnyObject, Observable, Hashable, Identifiable, SendableMetatype {
    /// A model with values that were made by ``createBackingData()`` or read from the store.
    init(backingData: any BackingData<Self>)
    /// The model's values.
    var persistentBackingData: any BackingData<Self> { get set }
    /// For the context: a model with values that were read from the store.
    init(_$backing backing: ModelBacking)
    var _$backing: ModelBacking { get set }
    static var _$slotCount: Int { get }
    static var _$constraints: [Schema.Constraint] { get }
    func _$adoptInitialValues()
    /// What the model's stored properties are.
    static var schemaMetadata: [Schema.PropertyMetadata] { get }
}

extension PersistentModel {
    /// What the model is called in its store, in this process and in later ones.
    ///
    /// A model that was never saved has a temporary identifier; saving gives it its lasting one.
    public var persistentModelID: PersistentIdentifier { _$backing.identifier(of: Self.self) }
    public var id: PersistentIdentifier { persistentModelID }
    /// The context that the model was inserted in or fetched by.
    public var modelContext: ModelContext? { _$backing.context }
    /// True where attributes or relationships were set since the last save.
    public var hasChanges: Bool { _$backing.hasChanges }
    /// True from the deletion on.
    public var isDeleted: Bool { _$backing.state == .deleted || _$backing.state == .gone }

    public static func == (a: Self, b: Self) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// MARK: Values by key path

// A key path that leads to no stored property of the model traps: it is the program's mistake. What is set tells no
// observer.
extension PersistentModel {
    /// Values for a new model, none of them set.
    public static func createBackingData<P: PersistentModel>() -> some BackingData<P> {
        ModelBackingData<P>(for: P.self)
    }

    @_disfavoredOverload
    public func getValue<Value: Decodable>(forKey keyPath: KeyPath<Self, Value>) -> Value {
        adopted.value(at: keyPath)
    }
    public func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Self, Value>) -> Value {
        adopted.value(at: keyPath)
    }
    public func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Self, Value?>) -> Value? {
        adopted.value(at: keyPath)
    }
    public func getValue<Value: RelationshipCollection>(forKey keyPath: KeyPath<Self, Value>) -> Value {
        adopted.value(at: keyPath)
    }
    /// For an attribute with a transformer.
    public func getTransformableValue<Value>(forKey keyPath: KeyPath<Self, Value>) -> Value {
        adopted.value(at: keyPath)
    }

    @_disfavoredOverload
    public func setValue<Value: Encodable>(forKey keyPath: KeyPath<Self, Value>, to newValue: Value) {
        adopted.set(newValue, at: keyPath)
    }
    public func setValue<Value: PersistentModel>(forKey keyPath: KeyPath<Self, Value>, to newValue: Value) {
        adopted.set(newValue, at: keyPath)
    }
    public func setValue<Value: PersistentModel>(forKey keyPath: KeyPath<Self, Value?>, to newValue: Value?) {
        adopted.set(newValue, at: keyPath)
    }
    public func setValue<Value: RelationshipCollection>(forKey keyPath: KeyPath<Self, Value>, to newValue: Value) {
        adopted.set(newValue, at: keyPath)
    }
    /// For an attribute with a transformer.
    public func setTransformableValue<Value>(forKey keyPath: KeyPath<Self, Value>, to newValue: Value) {
        adopted.set(newValue, at: keyPath)
    }

    /// With what the initializer of a subclass has assigned.
    fileprivate var adopted: ModelBacking {
        _$adoptInitialValues()
        return _$backing
    }
}

// MARK: What `@Model` writes, for classes that do without it

extension PersistentModel {
    public init(_$backing backing: ModelBacking) { self.init(backingData: ModelBackingData<Self>(backing)) }

    public var _$backing: ModelBacking {
        get { ModelBackingData<Self>.backing(persistentBackingData) }
        set { persistentBackingData = ModelBackingData<Self>(newValue) }
    }

    public static var _$slotCount: Int { schemaMetadata.count }
    public static var _$constraints: [Schema.Constraint] { [] }
    public func _$adoptInitialValues() {}
}

// The other way round, for those that `@Model` wrote.
extension _ModelRoot {
    public init(backingData: any BackingData<Self>) {
        self.init(_$backing: ModelBackingData<Self>.backing(backingData))
    }

    public var persistentBackingData: any BackingData<Self> {
        get { ModelBackingData<Self>(adopted) }
        set { _$backing = ModelBackingData<Self>.backing(newValue) }
    }
}

/// What `@Model` adds to the class at the top of a hierarchy, and to no other.
public protocol _ModelRoot: PersistentModel {}

/// Marks a stored property that has been given its first value.
public struct PersistedProperty {
    public init() {}
}
