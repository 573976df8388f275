import MartletStore

/// Where models are kept.
public struct ModelConfiguration: Sendable, Hashable, Identifiable {
    public let name: String
    /// The file. Of no meaning in memory.
    public let url: URL
    public let isStoredInMemoryOnly: Bool
    /// False opens for reading only. The file must be there then.
    public let allowsSave: Bool
    let schema: SchemaBox?

    public var id: String { name }

    /// Identity is enough to tell schemas apart.
    struct SchemaBox: Sendable, Hashable {
        let schema: Schema
        static func == (a: SchemaBox, b: SchemaBox) -> Bool { a.schema === b.schema }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(schema)) }
    }

    /// - Parameters:
    ///   - name: names the file `NAME.store` in the folder for an application's data; `default` by default.
    ///   - schema: for a container that is given none.
    public init(
        _ name: String? = nil, schema: Schema? = nil, isStoredInMemoryOnly: Bool = false, allowsSave: Bool = true
    ) {
        let name = name ?? "default"
        self.init(name, schema, Self.defaultURL(name), isStoredInMemoryOnly, allowsSave)
    }

    public init(_ name: String? = nil, schema: Schema? = nil, url: URL, allowsSave: Bool = true) {
        let name = name ?? url.deletingPathExtension().lastPathComponent
        self.init(name, schema, url, false, allowsSave)
    }

    public init(isStoredInMemoryOnly: Bool) {
        self.init(nil, schema: nil, isStoredInMemoryOnly: isStoredInMemoryOnly)
    }

    private init(_ name: String, _ schema: Schema?, _ url: URL, _ isStoredInMemoryOnly: Bool, _ allowsSave: Bool) {
        self.name = name
        self.url = url
        self.isStoredInMemoryOnly = isStoredInMemoryOnly
        self.allowsSave = allowsSave
        self.schema = schema.map(SchemaBox.init)
    }

    private static func defaultURL(_ name: String) -> URL {
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return (folders.first ?? FileManager.default.temporaryDirectory)
            .appending(path: ProcessInfo.processInfo.processName)
            .appending(path: "\(name).store")
    }
}
