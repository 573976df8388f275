public import MartletStore

extension ModelConfiguration {
    /// A file that is kept in step with other devices for as long as its container lives.
    ///
    ///     ModelConfiguration(url: file, sync: .kafka("broker:9092", topic: "trips", name: "phone"))
    ///
    /// - Parameters:
    ///   - name: the file's name without its extension by default.
    ///   - sync: how; MartletAgent has `.kafka`. Nil: not at all.
    public init(_ name: String? = nil, schema: Schema? = nil, url: URL, sync: (any StoreSync)?) {
        self.init(name, schema: schema, url: url)
        self.sync = sync
    }

    public init(_ name: String? = nil, schema: Schema? = nil, url: URL, sync: some StoreSync) {
        self.init(name, schema: schema, url: url)
        self.sync = sync
    }

    /// The file `NAME.store` in the folder for an application's data, kept in step with other devices.
    public init(_ name: String? = nil, schema: Schema? = nil, sync: some StoreSync) {
        self.init(name, schema: schema)
        self.sync = sync
    }

    /// How the store is kept in step with others. Nil: not at all.
    public var sync: (any StoreSync)? {
        get { syncBox?.sync }
        set { syncBox = newValue.map(SyncBox.init) }
    }

    /// Two configurations that sync are the same where one is a copy of the other.
    final class SyncBox: Sendable, Hashable {
        let sync: any StoreSync
        init(_ sync: any StoreSync) { self.sync = sync }
        static func == (a: SyncBox, b: SyncBox) -> Bool { a === b }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }
}

/// How a store is kept in step with others; MartletAgent has one over Kafka.
public typealias StoreSync = MartletStore.StoreSync
