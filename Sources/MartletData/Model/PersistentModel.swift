/// A class whose instances a ``ModelContext`` keeps in a store. Conformance comes from `@Model`.
///
/// A model belongs to one context, and is used where that context is used: it isn't Sendable. Two references are equal when they are
/// the same object; a context has one object for each row.
public protocol PersistentModel: AnyObject, Observable, Hashable, Identifiable, SendableMetatype {
    /// For the context: a model with values that were read from the store.
    init(_$backing backing: ModelBacking)
    var _$backing: ModelBacking { get set }
    var _$observationRegistrar: ObservationRegistrar { get }
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

/// What `@Model` adds to the class at the top of a hierarchy, and to no other.
public protocol _ModelRoot: PersistentModel {}

/// Marks a stored property that has been given its first value.
public struct PersistedProperty {
    public init() {}
}
