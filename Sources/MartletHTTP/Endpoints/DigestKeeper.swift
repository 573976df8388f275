import Foundation
import MartletAgent
import MartletStore
import MartletSync
import Synchronization

/// Computes the digest of the store on request, on a thread and a connection of its own. That reads every row, so
/// requests don't wait for it.
final class DigestKeeper: Sendable {
    private struct State: Sendable {
        var isRunning = false
        var digest: String?
        var computed: Date?
        var problem: String?
        var at: ContinuousClock.Instant?
    }

    /// Requests within this time get the same answer.
    private static let age = Duration.seconds(30)
    private let path: String
    private let state = Mutex(State())

    init(path: String) { self.path = path }

    /// Returns the present state as JSON: `running` is true until the digest is computed.
    func answer() throws -> String {
        let (known, begins) = state.withLock { state in
            let isFresh = state.at.map { .now - $0 < Self.age } ?? false
            let begins = !isFresh && !state.isRunning
            if begins { state.isRunning = true }
            return (state, begins)
        }
        if begins { Thread.detachNewThread { self.compute() } }
        return try JSON.line([
            "running": known.isRunning, "digest": known.digest, "time": JSON.date(known.computed),
            "problem": known.problem,
        ])
    }

    private func compute() {
        let result = Result {
            var configuration = StoreConfiguration()
            configuration.isReadOnly = true
            let store = try Store(path: path, configuration: configuration)
            defer { try? store.close() }
            return try StoreDigest.compute(store).digest
        }
        state.withLock { state in
            state.isRunning = false
            state.at = .now
            switch result {
            case .success(let digest):
                state.problem = nil
                state.digest = digest
                state.computed = Date()
            case .failure(let error):
                state.problem = "\(error)"
            }
        }
    }
}
