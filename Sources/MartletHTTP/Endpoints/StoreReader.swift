import Foundation
import MartletAgent
package import MartletStore
import MartletSync
import Synchronization

/// Reads the store's state, on a connection of its own: the agent's connection is busy applying.
///
/// However often it is asked, it reads the store once a second at most, and the whole history once a minute, on a
/// thread of its own, while it returns the former size. Only the first call of ``sizes()`` waits for that. Calls wait
/// for each other, and block the calling thread.
package final class StoreReader: Sendable {
    package struct Sizes: Sendable, Equatable {
        var database: Int64
        var wal: Int64
        var history: HistorySize
        /// What a cursor keeps of it beyond the bounds.
        var heldBytes: Int64

        package init(database: Int64, wal: Int64, history: HistorySize, heldBytes: Int64) {
            self.database = database
            self.wal = wal
            self.history = history
            self.heldBytes = heldBytes
        }
    }

    private struct State {
        var store: Store?
        var status: (value: SyncStatus, at: ContinuousClock.Instant)?
        var history: (value: HistoryReport, at: ContinuousClock.Instant)?
        var isMeasuring = false
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
            if let known = state.history { return known.value }
            let report = try Self.open(path, &state).historyReport()
            state.history = (report, .now)
            return report
        }
        measureIfDue()
        return Sizes(
            database: Self.size(path), wal: Self.size(path + "-wal"), history: history.size,
            heldBytes: history.held?.bytes ?? 0)
    }

    /// Returns what was last measured of the history, without waiting. Nil before the first time.
    func measuredHistory() -> HistoryReport? {
        measureIfDue()
        return state.withLock { $0.history?.value }
    }

    private func measureIfDue() {
        let isDue = state.withLock { state in
            let isDue = !state.isMeasuring && state.history.map { .now - $0.at >= Self.historyAge } ?? true
            if isDue { state.isMeasuring = true }
            return isDue
        }
        // In a large history it takes longer than a scraper waits.
        if isDue { Thread.detachNewThread { self.measure() } }
    }

    /// Measures the history, on a connection of its own. If that fails, the former size stays until the next time.
    private func measure() {
        let report = try? measured()
        state.withLock { state in
            state.isMeasuring = false
            guard let value = report ?? state.history?.value else { return }
            state.history = (value, .now)
        }
    }

    private func measured() throws -> HistoryReport {
        let store = try Self.connect(path)
        defer { try? store.close() }
        return try store.historyReport()
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
        let store = try connect(path)
        state.store = store
        return store
    }

    private static func connect(_ path: String) throws -> Store {
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        // These connections read only a few counts.
        configuration.cacheKiB = 256
        return try Store(path: path, configuration: configuration)
    }
}
