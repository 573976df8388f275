public import MartletStore

/// A store in a separate temporary folder.
public final class TemporaryStore: Sendable {
    public let folder: TemporaryFolder
    public let store: Store

    public var path: String { store.path }

    /// Runs the SQL, creates a store on the file, and attaches its tables.
    ///
    /// - Parameter sql: the user's schema. Another program creates it, as is usual.
    public convenience init(
        _ sql: String = "", configuration: StoreConfiguration = .init(), attach request: AttachRequest? = .init()
    ) throws {
        let folder = try TemporaryFolder()
        if !sql.isEmpty { try ForeignProgram.shell.run(sql, on: folder.path("store.db")) }
        try self.init(folder, configuration: configuration)
        if let request { _ = try store.attach(request) }
    }

    public init(_ folder: TemporaryFolder, configuration: StoreConfiguration = .init()) throws {
        self.folder = folder
        store = try Store.create(path: folder.path("store.db"), configuration: configuration)
    }

    deinit {
        try? store.close()
    }

    /// Runs SQL in another program, with that program's default settings.
    @discardableResult
    public func run(_ program: ForeignProgram, _ sql: String) throws -> String {
        try program.run(sql, on: path)
    }

    /// Returns all changes after the token, one line each.
    public func changes(after token: HistoryToken? = nil) throws -> [String] {
        try store.fetchHistory(HistoryQuery(after: token)).flatMap(\.changes).map(\.line)
    }
}

extension HistoryChange {
    /// The change as text, for expectations: `update item#3 name="b" was name="a"`.
    public var line: String {
        var line = "\(kind) \(entity)" + (row.map { "#\($0)" } ?? "")
        for (prefix, values) in [("", values), ("", tombstone), ("was ", oldValues)] where !values.isEmpty {
            line += " " + prefix + values.sorted { $0.key < $1.key }.map { "\($0)=\($1.text)" }.joined(separator: " ")
        }
        return line
    }
}

extension Value {
    /// The value in a readable form.
    public var text: String {
        switch self {
        case .null: "null"
        case .integer(let value): String(value)
        case .real(let value): String(value)
        case .text(let value): "\"\(value)\""
        case .blob(let value): "x\(value)"
        case .rawText(let value): "raw\(value)"
        case .reference(let value): "->\(value.entity)"
        }
    }
}
