/// A class whose instances a ``ModelContext`` saves in a store. `@Model` adds the conformance.
///
/// A model belongs to one context, and may only be used where that context is used: it isn't Sendable. Two references
/// are equal if they are the same object; a context has one object per row.
///
/// A class without the macro implements ``schemaMetadata``, ``persistentBackingData`` and ``init(backingData:)``, and
/// properties that call ``getValue(forKey:)-(KeyPath<Self,Value>)`` and
/// ``setValue(forKey:to:)-(KeyPath<Self,Value>,_)``.
public protocol PersistentModel: AnyObject, Observable, Hashable, Identifiable, SendableMetatype {
    /// Creates a model with values from ``createBackingData()`` or from the store.
    init(backingData: any BackingData<Self>)
    /// The model's values.
    var persistentBackingData: any BackingData<Self> { get set }
    /// For the context: creates a model with values that were read from the store.
    init(_$backing backing: ModelBacking)
    var _$backing: ModelBacking { get set }
    static var _$slotCount: Int { get }
    static var _$constraints: [Schema.Constraint] { get }
    func _$adoptInitialValues()
    /// Describes the model's stored properties.
    static var schemaMetadata: [Schema.PropertyMetadata] { get }
}

extension PersistentModel {
    /// The identifier of the model in its store, in this process and in later ones.
    ///
    /// A model that was never saved has a temporary identifier; the first save assigns the permanent one.
    public var persistentModelID: PersistentIdentifier { _$backing.identifier(of: Self.self) }
    public var id: PersistentIdentifier { persistentModelID }
    /// The context that the model was inserted into or fetched by.
    public var modelContext: ModelContext? { _$backing.context }
    /// True if attributes or relationships were set since the last save.
    public var hasChanges: Bool { _$backing.hasChanges }
    /// True once the model has been deleted in its context.
    public var isDeleted: Bool { _$backing.state == .deleted || _$backing.state == .gone }

    public static func == (a: Self, b: Self) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// MARK: Values by key path

// A key path that doesn't lead to a stored property of the model traps: it is a programming error. Setting a value
// doesn't notify observers.
extension PersistentModel {
    /// Creates backing data for a new model, without any values.
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

    /// The backing, including values that the initializer of a subclass has assigned.
    fileprivate var adopted: ModelBacking {
        _$adoptInitialValues()
        return _$backing
    }
}

// MARK: Requirements that `@Model` generates, for classes without it

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

// The reverse, for classes with `@Model`.
extension _ModelRoot {
    public init(backingData: any BackingData<Self>) {
        self.init(_$backing: ModelBackingData<Self>.backing(backingData))
    }

    public var persistentBackingData: any BackingData<Self> {
        get { ModelBackingData<Self>(adopted) }
        set { _$backing = ModelBackingData<Self>.backing(newValue) }
    }
}

/// The conformance that `@Model` adds to the class at the top of a hierarchy only.
public protocol _ModelRoot: PersistentModel {}

/// Marks a stored property that has its first value.
public struct PersistedProperty {
    public init() {}
}
