/// A model's values, for a snapshot to be made of.
///
/// Made by contexts only.
public protocol BackingData<Model> {
    associatedtype Model: PersistentModel

    var persistentModelID: PersistentIdentifier? { get }
    func getValue<Value: Decodable>(forKey keyPath: KeyPath<Model, Value>) -> Value
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value>) -> Value
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value?>) -> Value?
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, [Value]>) -> [Value]
    /// For ``DefaultSnapshot``.
    var _$contents: BackingContents { get }
}

/// What a ``DefaultSnapshot`` takes over.
public struct BackingContents {
    let record: SnapshotRecord
}

/// The values of a model of a context.
struct ModelBackingData<Model: PersistentModel>: BackingData {
    let model: Model
    let record: SnapshotRecord

    var persistentModelID: PersistentIdentifier? { record.identifier }
    func getValue<Value: Decodable>(forKey keyPath: KeyPath<Model, Value>) -> Value { model[keyPath: keyPath] }
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value>) -> Value { model[keyPath: keyPath] }
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, Value?>) -> Value? { model[keyPath: keyPath] }
    func getValue<Value: PersistentModel>(forKey keyPath: KeyPath<Model, [Value]>) -> [Value] {
        model[keyPath: keyPath]
    }
    var _$contents: BackingContents { BackingContents(record: record) }
}
