/// What a store of one's own is made of.
public protocol DataStoreConfiguration<Store>: Hashable {
    associatedtype Store: DataStore where Self == Self.Store.Configuration

    /// Names the configuration among those of a container.
    var name: String { get }
    /// The models that the store keeps. Where there is none, the container sets it to those that no other configuration
    /// names.
    var schema: Schema? { get set }

    /// Called before the store is made. Nothing is checked by default.
    func validate() throws
}

extension DataStoreConfiguration {
    public func validate() throws {}
}
