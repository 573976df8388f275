public import MartletStore

extension ModelConfiguration {
    /// A file that is kept in sync with other devices for as long as its container lives.
    ///
    ///     ModelConfiguration(url: file, sync: .kafka("broker:9092", topic: "trips", name: "phone"))
    ///
    /// - Parameters:
    ///   - name: the file's name without its extension by default.
    ///   - sync: the kind of sync; MartletAgent has `.kafka`. Nil disables sync.
    public init(_ name: String? = nil, schema: Schema? = nil, url: URL, sync: (any StoreSync)?) {
        self.init(name, schema: schema, url: url)
        self.sync = sync
    }

    public init(_ name: String? = nil, schema: Schema? = nil, url: URL, sync: some StoreSync) {
        self.init(name, schema: schema, url: url)
        self.sync = sync
    }

    /// The file `NAME.store` in the directory for application data, kept in sync with other devices.
    public init(_ name: String? = nil, schema: Schema? = nil, sync: some StoreSync) {
        self.init(name, schema: schema)
        self.sync = sync
    }

    /// The sync of the store with other devices. Nil disables it.
    public var sync: (any StoreSync)? {
        get { syncBox?.sync }
        set { syncBox = newValue.map(SyncBox.init) }
    }

    /// Compared by reference: two configurations with sync are equal only if one is a copy of the other.
    final class SyncBox: Sendable, Hashable {
        let sync: any StoreSync
        init(_ sync: any StoreSync) { self.sync = sync }
        static func == (a: SyncBox, b: SyncBox) -> Bool { a === b }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }
}

/// The way in which a store is kept in sync with others; MartletAgent has one over Kafka.
public typealias StoreSync = MartletStore.StoreSync
