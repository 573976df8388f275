// Overloads that `@Model`'s accessors resolve to if nothing else fits the property's type: the compiler then explains
// what to do, once for each.

extension ModelBacking {
    @available(
        *, unavailable,
        message: "A property of this type can't be stored: make the type Codable, or mark the property @Transient."
    )
    @_disfavoredOverload
    public func initialize<T>(_ slot: Int, _ value: T) {}

    @available(
        *, unavailable,
        message: "A property of this type can't be stored: make the type Codable, or mark the property @Transient."
    )
    @_disfavoredOverload
    public func get<T>(_ slot: Int) -> T { preconditionFailure("Nothing compiles that calls this.") }

    @available(
        *, unavailable,
        message: "A property of this type can't be stored: make the type Codable, or mark the property @Transient."
    )
    @_disfavoredOverload
    public func set<T>(_ slot: Int, _ value: T, of model: any PersistentModel) {}
}

extension InitialValues {
    @available(
        *, unavailable,
        message: "A property of this type can't be stored: make the type Codable, or mark the property @Transient."
    )
    @_disfavoredOverload
    public func initialize<T>(_ slot: Int, _ value: T) {}
}

extension Schema {
    @available(
        *, unavailable,
        message: "A property of this type can't be stored: make the type Codable, or mark the property @Transient."
    )
    @_disfavoredOverload
    public static func _property<M: PersistentModel, V>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ metadata: any SchemaProperty = Attribute(),
        default value: (() -> V)? = nil
    ) -> PropertyMetadata { preconditionFailure("Nothing compiles that calls this.") }
}
