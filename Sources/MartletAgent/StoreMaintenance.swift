import Logging
import MartletStore
public import MartletSync

/// Work on a store at an operator's request, which its agent would otherwise do later or never. Not while the agent
/// runs: it keeps the number of parked changes in memory.
public enum StoreMaintenance {
    /// Retries quarantined messages; see ``/MartletEngine/SyncEngine/retryQuarantined(_:)``.
    ///
    /// - Parameters:
    ///   - id: the message to retry. Nil: all.
    ///   - configuration: the agent's configuration. Its `store`, `sync` and `security` are used: how far a clock may
    ///     be ahead, how local changes that are enqueued on the way are encoded, which keys open messages, and who may
    ///     have sent them. Nil: the defaults; messages that nobody is proven to have sent are not retried then.
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store, `.invalidArgument`
    ///   when there is no message with that number, or if the configuration is needed to decide about one.
    public static func retryQuarantined(
        store path: String, id: Int64? = nil, configuration: AgentConfiguration? = nil
    ) throws -> QuarantineRetryReport {
        // The engine would add its tables to a store that never synced.
        let messages = try reading(path) { try $0.quarantined().filter { id == nil || $0.id == id } }
        if let id, messages.isEmpty { throw QuarantinedMessage.unknown(id) }
        guard !messages.isEmpty else { return QuarantineRetryReport() }
        if configuration == nil, messages.contains(where: \.needsRules) {
            throw StoreError(
                .invalidArgument,
                "Nothing was retried: it is not proven who sent some of the messages.",
                hint: "Pass the agent's configuration: its security settings decide who may have sent them.")
        }
        return try engine(
            path, configuration ?? AgentConfiguration(),
            instead: "An agent retries quarantined messages by itself at each start."
        ) {
            try $0.retryQuarantined(id)
        }
    }

    /// Retries all parked changes; see ``/MartletEngine/SyncEngine/retryParked()``.
    ///
    /// - Parameter configuration: as for ``retryQuarantined(store:id:configuration:)``.
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store.
    public static func retryParked(
        store path: String, configuration: AgentConfiguration = .init()
    ) throws -> ParkedRetryReport {
        guard try reading(path, { try !$0.parked().isEmpty }) else { return ParkedRetryReport() }
        return try engine(
            path, configuration, instead: "A running agent retries parked changes by itself when they can be applied."
        ) {
            try $0.retryParked()
        }
    }

    /// Gives a store a node ID of its own; see ``/MartletEngine/SyncEngine/fork(as:)``.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store, `.invalidArgument` if
    ///   it never synced, and so has no node ID yet.
    public static func fork(store path: String) throws -> ForkReport {
        guard try reading(path, { try SyncStatus.read($0).node }) != nil else {
            throw StoreError(
                .invalidArgument, "\(path) has never synced, so it has no node ID that another store could share.",
                hint: "Run an agent on it without forking.")
        }
        return try engine(path, AgentConfiguration(), instead: "", acceptsCopies: true) { engine in
            let report = try engine.fork()
            try RecordedPlace(engine.session).record(StorePlace(of: path).text)
            return report
        }
    }

    /// Gives new stamps to changes that were written while the clock was ahead; see
    /// ``/MartletEngine/SyncEngine/restamp()``.
    ///
    /// - Parameter configuration: as for ``retryQuarantined(store:id:configuration:)``.
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store.
    public static func restamp(
        store path: String, configuration: AgentConfiguration = .init()
    ) throws -> RestampReport {
        // The engine would add its tables to a store that never synced.
        guard try reading(path, { try SyncStatus.read($0).node }) != nil else { return RestampReport() }
        return try engine(path, configuration, instead: "Start it again afterwards: it publishes the new stamps.") {
            try $0.restamp()
        }
    }

    private static func reading<T>(_ path: String, _ body: (Store) throws -> T) throws -> T {
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        let store = try Store(path: path, configuration: configuration)
        let result = Result { try body(store) }
        try store.close()
        return try result.get()
    }

    static func engine<T>(
        _ path: String, _ configuration: AgentConfiguration, instead hint: String, acceptsCopies: Bool = false,
        _ body: (SyncEngine) throws -> T
    ) throws -> T {
        let lock: StoreLock
        do {
            lock = try StoreLock(store: path)
        } catch let error as StoreError where error.code == .locked {
            throw StoreError(.locked, error.message, hint: "Stop the agent first. \(hint)")
        }
        return try withExtendedLifetime(lock) {
            let engine = try SyncEngine(
                path: path, store: configuration.store, configuration: configuration.sync,
                security: try configuration.security.load(log: Logger(label: "martlet.security")))
            let result = Result {
                if !acceptsCopies { try IdentityCheck.refuseCopies(engine) }
                return try body(engine)
            }
            try engine.close()
            return try result.get()
        }
    }
}
