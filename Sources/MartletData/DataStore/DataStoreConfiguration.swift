/// The configuration of a custom store.
public protocol DataStoreConfiguration<Store>: Hashable {
    associatedtype Store: DataStore where Self == Self.Store.Configuration

    /// Identifies the configuration within a container.
    var name: String { get }
    /// The models that the store contains. If nil, the container sets it to those that no other configuration lists.
    var schema: Schema? { get set }

    /// Called before the store is created. Checks nothing by default.
    func validate() throws
}

extension DataStoreConfiguration {
    public func validate() throws {}
}
