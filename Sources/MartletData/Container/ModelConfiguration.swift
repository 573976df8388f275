import MartletStore

/// The location and options of one of a container's stores.
public struct ModelConfiguration: DataStoreConfiguration, Sendable, Hashable, Identifiable {
    public typealias Store = DefaultStore

    /// Identifies the configuration within a container.
    public let name: String
    /// The file. Ignored if the store is in memory.
    public let url: URL
    public let isStoredInMemoryOnly: Bool
    /// False opens the file for reading only; it must exist then.
    public let allowsSave: Bool
    public let groupContainer: GroupContainer
    public let cloudKitDatabase: CloudKitDatabase
    /// The models that are stored here, together with the models related to them. If nil: those that no other
    /// configuration of the container lists.
    public var schema: Schema?
    var syncBox: SyncBox?

    public var id: String { name }
    public var groupAppContainerIdentifier: String? { groupContainer.identifier }
    public var cloudKitContainerIdentifier: String? { cloudKitDatabase.identifier }

    /// - Parameters:
    ///   - name: the store is the file `NAME.store` in the directory for application data; `default` by default.
    ///   - schema: see ``schema``.
    ///   - groupContainer: accepted, without effect: Linux has no app groups.
    ///   - cloudKitDatabase: accepted, without effect: MartletSync syncs.
    public init(
        _ name: String? = nil, schema: Schema? = nil, isStoredInMemoryOnly: Bool = false, allowsSave: Bool = true,
        groupContainer: GroupContainer = .automatic, cloudKitDatabase: CloudKitDatabase = .automatic
    ) {
        let name = name ?? "default"
        self.name = name
        url = Self.defaultURL(name)
        self.isStoredInMemoryOnly = isStoredInMemoryOnly
        self.allowsSave = allowsSave
        self.groupContainer = groupContainer
        self.cloudKitDatabase = cloudKitDatabase
        self.schema = schema
    }

    /// - Parameters:
    ///   - name: the file's name without its extension by default.
    ///   - cloudKitDatabase: accepted, without effect.
    public init(
        _ name: String? = nil, schema: Schema? = nil, url: URL, allowsSave: Bool = true,
        cloudKitDatabase: CloudKitDatabase = .automatic
    ) {
        self.name = name ?? url.deletingPathExtension().lastPathComponent
        self.url = url
        isStoredInMemoryOnly = false
        self.allowsSave = allowsSave
        groupContainer = .automatic
        self.cloudKitDatabase = cloudKitDatabase
        self.schema = schema
    }

    public init(isStoredInMemoryOnly: Bool = false) {
        self.init(nil, schema: nil, isStoredInMemoryOnly: isStoredInMemoryOnly)
    }

    /// For the given models, together with the models related to them.
    public init(for models: any PersistentModel.Type..., isStoredInMemoryOnly: Bool = false) {
        self.init(nil, schema: Schema(models), isStoredInMemoryOnly: isStoredInMemoryOnly)
    }

    /// - Throws: ``SwiftDataError/configuration`` for a name that can't be a file name.
    func checkFileName() throws {
        if url == Self.defaultURL(name), name.isEmpty || name.contains("/") || name.contains("\0") {
            throw SwiftDataError.configuration.because(
                """
                The configuration's name "\(name)" can't be a file name: it is empty, or contains a slash or a NUL. \
                Choose another, or set url.
                """,
                closer: .configurationFileNameContainsInvalidCharacters)
        }
        // SQLite adds "-wal" and "-shm".
        guard url.lastPathComponent.utf8.count <= 251 else {
            throw SwiftDataError.configuration.because(
                """
                The file name has \(url.lastPathComponent.utf8.count) bytes; at most 251 are allowed, because SQLite \
                creates other files whose names are four bytes longer.
                """,
                closer: .configurationFileNameTooLong)
        }
    }

    private static func defaultURL(_ name: String) -> URL {
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return (folders.first ?? FileManager.default.temporaryDirectory)
            .appending(path: ProcessInfo.processInfo.processName)
            .appending(path: "\(name).store")
    }
}
