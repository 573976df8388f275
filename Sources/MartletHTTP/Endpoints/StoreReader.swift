import Foundation
import MartletAgent
import MartletStore
import MartletSync
import Synchronization

/// Reads the store's state, on a connection of its own: the agent's connection is busy applying.
///
/// However often it is asked, it reads the store once a second at most, and the whole history once a minute. Calls wait
/// for each other, and block the calling thread.
final class StoreReader: Sendable {
    struct Sizes: Sendable, Equatable {
        var database: Int64
        var wal: Int64
        var history: HistorySize
    }

    private struct State {
        var store: Store?
        var status: (value: SyncStatus, at: ContinuousClock.Instant)?
        var history: (value: HistorySize, at: ContinuousClock.Instant)?
        /// By whether they include values.
        var activity: [Bool: (value: String, at: ContinuousClock.Instant)] = [:]
    }

    private static let statusAge = Duration.seconds(1)
    private static let historyAge = Duration.seconds(60)

    let path: String
    private let state = Mutex(State())

    init(path: String) { self.path = path }

    /// - Throws: ``/MartletCore/StoreError`` when the store can't be read.
    func status() throws -> SyncStatus {
        try state.withLock { state in
            if let known = state.status, .now - known.at < Self.statusAge { return known.value }
            let status = try SyncStatus.read(try Self.open(path, &state))
            state.status = (status, .now)
            return status
        }
    }

    /// - Throws: ``/MartletCore/StoreError`` when the store can't be read.
    func sizes() throws -> Sizes {
        let history = try state.withLock { state in
            if let known = state.history, .now - known.at < Self.historyAge { return known.value }
            let size = try Self.open(path, &state).historySize()
            state.history = (size, .now)
            return size
        }
        return Sizes(database: Self.size(path), wal: Self.size(path + "-wal"), history: history)
    }

    /// Returns the lists of the dashboard, as JSON.
    ///
    /// - Throws: ``/MartletCore/StoreError`` when the store can't be read.
    func activity(withValues: Bool) throws -> String {
        let status = try status()
        return try state.withLock { state in
            if let known = state.activity[withValues], .now - known.at < Self.statusAge { return known.value }
            let store = try Self.open(path, &state)
            let activity = try JSON.line(Activity(store, status, withValues: withValues).document)
            state.activity[withValues] = (activity, .now)
            return activity
        }
    }

    private static func size(_ path: String) -> Int64 {
        let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
        return size?.int64Value ?? 0
    }

    private static func open(_ path: String, _ state: inout State) throws -> Store {
        if let store = state.store { return store }
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        // This connection reads only a few counts.
        configuration.cacheKiB = 256
        let store = try Store(path: path, configuration: configuration)
        state.store = store
        return store
    }
}
