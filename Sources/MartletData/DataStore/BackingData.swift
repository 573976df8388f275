import MartletStore

/// A model's values, by key path.
///
/// Created by contexts, by ``PersistentModel/persistentBackingData``, and by ``PersistentModel/createBackingData()``;
/// apps can't provide their own conforming type. Must be used where the model is used.
public protocol BackingData<Model> {
    associatedtype Model: PersistentModel

    /// Creates data for a model that doesn't exist yet, without any values.
    init(for modelType: Model.Type)
    /// The model's identifier. A temporary one can be set; that of a saved model doesn't change.
    var persistentModelID: PersistentIdentifier? { get set }
    /// Internal data of no use to apps.
    var metadata: Any { get }

    func getValue<Value: Decodable>(forKey keyPath: KeyPath<Model, Value>) -> Value
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value>) -> Value
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value?>) -> Value?
    func getValue<Value: RelationshipCollection>(forKey keyPath: KeyPath<Model, Value>) -> Value
    func getTransformableValue<Value>(forKey keyPath: KeyPath<Model, Value>) -> Value
    func setValue<Value: Encodable>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value)
    func setValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value)
    func setValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value?>, to newValue: Value?)
    func setValue<Value: RelationshipCollection>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value)
    func setTransformableValue<Value>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value)
    /// For ``DefaultSnapshot``.
    var _$contents: BackingContents { get }
}

/// The contents that a ``DefaultSnapshot`` copies.
public struct BackingContents {
    let record: SnapshotRecord
}

/// The values of a model, backed by the model itself.
struct ModelBackingData<Model: PersistentModel>: BackingData {
    let backing: ModelBacking
    /// The record that a context created for a save.
    private let prepared: SnapshotRecord?

    init(_ backing: ModelBacking, prepared: SnapshotRecord? = nil) {
        self.backing = backing
        self.prepared = prepared
    }

    init(for modelType: Model.Type) { self.init(ModelBacking()) }

    /// The backing of data that an app passes in.
    static func backing(_ data: any BackingData<Model>) -> ModelBacking {
        guard let known = data as? ModelBackingData<Model> else {
            preconditionFailure("Create a model's backing data with createBackingData(), not \(type(of: data)).")
        }
        return known.backing
    }

    var persistentModelID: PersistentIdentifier? {
        get { prepared?.identifier ?? backing.identifier(of: Model.self) }
        nonmutating set {
            if let newValue, backing.row == nil { backing.remember(newValue) }
        }
    }
    var metadata: Any { backing }

    func getValue<Value: Decodable>(forKey keyPath: KeyPath<Model, Value>) -> Value { backing.value(at: keyPath) }
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value>) -> Value { backing.value(at: keyPath) }
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value?>) -> Value? {
        backing.value(at: keyPath)
    }
    func getValue<Value: RelationshipCollection>(forKey keyPath: KeyPath<Model, Value>) -> Value {
        backing.value(at: keyPath)
    }
    func getTransformableValue<Value>(forKey keyPath: KeyPath<Model, Value>) -> Value { backing.value(at: keyPath) }

    func setValue<Value: Encodable>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        backing.set(newValue, at: keyPath)
    }
    func setValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        backing.set(newValue, at: keyPath)
    }
    func setValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value?>, to newValue: Value?) {
        backing.set(newValue, at: keyPath)
    }
    func setValue<Value: RelationshipCollection>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        backing.set(newValue, at: keyPath)
    }
    func setTransformableValue<Value>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        backing.set(newValue, at: keyPath)
    }

    var _$contents: BackingContents {
        if let prepared { return BackingContents(record: prepared) }
        guard let context = backing.context, let model = backing.owner, let layout = backing.layout else {
            return BackingContents(record: SnapshotRecord(identifier: backing.identifier(of: Model.self)))
        }
        SnapshotEntities.note(context.container.unit(of: layout).layout)
        return BackingContents(record: context.record(model))
    }
}
