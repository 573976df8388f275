/// Makes a class a persistent model: its stored properties are saved in a store, it is observable, and it has an
/// identity.
///
/// Each stored property that isn't ``Transient()`` is an attribute (a ``StorableAttribute``, or Codable) or a
/// relationship (another model, an optional one, an array of them). Mark a subclass of a model with `@Model` too.
@attached(
    member, conformances: Observable, PersistentModel, _ModelRoot, Sendable,
    names: named(_$observationRegistrar), named(_$backing), named(_$slotCount), named(_$adoptInitialValues),
    named(_$backingData), named(_SwiftDataNoType), named(_$firstSlot), named(_$adopt), named(schemaMetadata),
    named(_$properties), named(_$constraints), named(init))
@attached(memberAttribute)
@attached(extension, conformances: Observable, PersistentModel, _ModelRoot)
public macro Model() = #externalMacro(module: "MartletDataMacros", type: "ModelMacro")

/// Sets how an attribute is stored.
///
/// - Parameters:
///   - options: see ``Schema/Attribute/Option``.
///   - originalName: the attribute's name in the previous version, if it was renamed.
///   - hashModifier: any text; changing it declares that the attribute's meaning has changed.
@attached(peer)
public macro Attribute(
    _ options: Schema.Attribute.Option..., originalName: String? = nil, hashModifier: String? = nil
) = #externalMacro(module: "MartletDataMacros", type: "MarkerMacro")

/// Sets how two models are related.
///
/// - Parameters:
///   - deleteRule: what happens to the related models when this one is deleted. `.nullify` by default.
///   - minimumModelCount: the least number of related models, checked on saving. 0 by default.
///   - maximumModelCount: the largest number of related models, checked on saving. 0, the default, is no limit.
///   - originalName: the relationship's name in the previous version, if it was renamed.
///   - inverse: the property of the other model that points back. Inferred if there is only one candidate.
@attached(peer)
public macro Relationship(
    _ options: Schema.Relationship.Option..., deleteRule: Schema.Relationship.DeleteRule = .nullify,
    minimumModelCount: Int? = 0, maximumModelCount: Int? = 0, originalName: String? = nil,
    inverse: AnyKeyPath? = nil, hashModifier: String? = nil
) = #externalMacro(module: "MartletDataMacros", type: "MarkerMacro")

/// Excludes a property from the store. It needs a default value, with which a fetched model starts.
@attached(peer)
public macro Transient() = #externalMacro(module: "MartletDataMacros", type: "MarkerMacro")

/// Requires the combination of values in these attributes to be unique among the models. Saving a new model whose
/// values a stored one already has updates the stored one.
@freestanding(declaration)
public macro Unique<T: PersistentModel>(_ constraints: [PartialKeyPath<T>]...) =
    #externalMacro(module: "MartletDataMacros", type: "ConstraintMacro")

/// Creates an index over each list of attributes.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: [PartialKeyPath<T>]...) =
    #externalMacro(module: "MartletDataMacros", type: "ConstraintMacro")

/// Creates an index over each list of attributes. An R-tree index becomes an ordinary index: SQLite keeps R-trees in
/// tables of their own, which no query uses by itself.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: Schema.Index<T>.Types<T>...) =
    #externalMacro(module: "MartletDataMacros", type: "ConstraintMacro")

/// Makes an actor a ``ModelActor``: adds its container, its executor with a context of its own, and
/// `init(modelContainer:)`.
///
/// The actor's other stored properties need default values, or an initializer that also sets `modelExecutor` and
/// `modelContainer`.
@attached(member, names: named(modelExecutor), named(modelContainer), named(init))
@attached(extension, conformances: ModelActor)
public macro ModelActor() = #externalMacro(module: "MartletDataMacros", type: "ModelActorMacro")

// Declared over parameter packs, like Foundation's own: with a single input, the compiler picks Foundation's macro
// wherever an optional is compared as a whole.

/// A condition on a model, which a fetch translates to SQL. A condition on several models can be evaluated in memory
/// only.
@freestanding(expression)
public macro Predicate<each T: PersistentModel>(_ body: (repeat each T) -> Bool)
    -> Foundation.Predicate<repeat each T> =
    #externalMacro(module: "MartletDataMacros", type: "PredicateMacro")

/// A condition on a transaction of the history, which a history fetch translates to SQL.
@freestanding(expression)
public macro Predicate<T: HistoryTransaction>(_ body: (T) -> Bool) -> Foundation.Predicate<T> =
    #externalMacro(module: "MartletDataMacros", type: "PredicateMacro")

/// A value computed from a model, for use in predicates: `expression.evaluate($0)`. Foundation's own macro creates
/// expressions of other types.
@freestanding(expression)
public macro Expression<each T: PersistentModel, R>(_ body: (repeat each T) -> R)
    -> Foundation.Expression<repeat each T, R> =
    #externalMacro(module: "MartletDataMacros", type: "PredicateMacro")

/// The macro that `@Model` attaches to each stored property.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_))
public macro _PersistedProperty(_ slot: Int) =
    #externalMacro(module: "MartletDataMacros", type: "PersistedPropertyMacro")
