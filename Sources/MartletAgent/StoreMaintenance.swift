import Logging
import MartletStore
public import MartletSync

/// What a person has done on a store at once, instead of waiting for its agent. Not while the agent runs: it keeps in
/// memory how much is parked.
public enum StoreMaintenance {
    /// Tries quarantined messages again; see ``/MartletSync/SyncEngine/retryQuarantined(_:)``.
    ///
    /// - Parameters:
    ///   - id: the one to try. Nil: all.
    ///   - configuration: the agent's, whose `store` and `sync` count: how far a clock may be ahead, and how local
    ///     changes are
    ///     encoded that are registered on the way.
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store, `.invalidArgument`
    ///   when there is no message of that number.
    public static func retryQuarantined(
        store path: String, id: Int64? = nil, configuration: AgentConfiguration = .init()
    ) throws -> QuarantineRetryReport {
        // A store that never synced stays one.
        let ids = try reading(path) { try $0.quarantined().map(\.id) }
        if let id, !ids.contains(id) { throw QuarantinedMessage.unknown(id) }
        guard !ids.isEmpty else { return QuarantineRetryReport() }
        return try engine(
            path, configuration, instead: "An agent retries quarantined messages by itself at each start."
        ) {
            try $0.retryQuarantined(id)
        }
    }

    /// Tries everything again that is parked; see ``/MartletSync/SyncEngine/retryParked()``.
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

    /// Gives a store a name of its own; see ``/MartletSync/SyncEngine/fork(as:)``.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store, `.invalidArgument`
    ///   where it never synced, and so has no name yet.
    public static func fork(store path: String) throws -> ForkReport {
        guard try reading(path, { try SyncStatus.read($0).node }) != nil else {
            throw StoreError(
                .invalidArgument, "\(path) has never synced, so it has no node ID that another store could share.",
                hint: "Run an agent on it without forking.")
        }
        return try engine(path, AgentConfiguration(), instead: "", acceptsCopies: true) { engine in
            let report = try engine.fork()
            try engine.recordPlace(StorePlace(of: path).text)
            return report
        }
    }

    /// Gives new stamps to what was written under a clock that was ahead; see ``/MartletSync/SyncEngine/restamp()``.
    ///
    /// - Parameter configuration: as for ``retryQuarantined(store:id:configuration:)``.
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store.
    public static func restamp(
        store path: String, configuration: AgentConfiguration = .init()
    ) throws -> RestampReport {
        // A store that never synced stays one.
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
