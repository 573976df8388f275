import Foundation
import Logging
import MartletStore
import MartletSync
import Synchronization

/// An agent inside a program that does something else.
///
/// Its thread waits for the store's lock, runs the agent, and starts it again after an error, so that a failed sync
/// does not take the program down. Nothing is lost meanwhile, because unsent changes are in the store's history. An
/// invalid configuration or a damaged file ends the session: each attempt would fail in the same way, and read the
/// whole store.
final class AgentSession: StoreSyncSession {
    private let body: Body

    init(_ configuration: AgentConfiguration, log: Logger) {
        let body = Body(configuration, log)
        self.body = body
        Thread.begin("martlet.agent") { body.run() }
    }

    deinit { body.stop() }

    var failure: (any Error)? { body.failure }

    func stop() async {
        body.stop()
        await body.ended()
    }

    /// The state that the thread holds, so that it doesn't hold the session.
    private final class Body: Sendable {
        private struct State {
            var agent: Agent?
            var failure: (any Error)?
            var hasEnded = false
            var waiting: [CheckedContinuation<Void, Never>] = []
        }

        private let configuration: AgentConfiguration
        private let log: Logger
        private let state = Mutex(State())
        private let signal = WakeSignal()

        init(_ configuration: AgentConfiguration, _ log: Logger) {
            self.configuration = configuration
            self.log = log
        }

        /// After an agent has run for this long, an error is the first of its kind.
        private static let soundTime = Duration.seconds(60)

        var failure: (any Error)? { state.withLock { $0.failure } }

        func run() {
            var hasWaited = false
            var backoff = Backoff(from: .seconds(1), to: .seconds(60))
            while !signal.isStopped {
                let begin = ContinuousClock.now
                let delay: Duration
                do {
                    try runAgent()
                    continue
                } catch let error as Permanent {
                    state.withLock { $0.failure = error.cause }
                    log.error("Sync ended", metadata: ["error": "\(error.cause)"])
                    break
                } catch let error as StoreError where error.code == .locked {
                    if !hasWaited { log.info("Another process is syncing this store; waiting for its turn") }
                    hasWaited = true
                    delay = .seconds(1)
                } catch let error as StoreError where error.code == .copied {
                    log.error(
                        "Store not synced: it may be a copy or a restored backup", metadata: ["error": "\(error)"])
                    delay = .seconds(60)
                } catch {
                    if ContinuousClock.now - begin > Self.soundTime { backoff.reset() }
                    log.error("Store not synced; will retry", metadata: ["error": "\(error)"])
                    delay = backoff.fail()
                }
                signal.wait(timeout: delay)
            }
            let waiting = state.withLock { state in
                state.hasEnded = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }

        private func runAgent() throws {
            let agent: Agent
            do {
                agent = try Agent(configuration, log: log)
            } catch let error where Permanent.causes(error) {
                throw Permanent(cause: error)
            }
            let isWanted = state.withLock { state in
                state.agent = agent
                return !signal.isStopped
            }
            defer { state.withLock { $0.agent = nil } }
            if isWanted { try agent.runUntilStopped() }
        }

        func stop() {
            signal.stop()
            state.withLock { $0.agent }?.stop()
        }

        func ended() async {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if !state.hasEnded { state.waiting.append(continuation) }
                    return state.hasEnded
                }
                if isOver { continuation.resume() }
            }
        }
    }

    /// An error of opening the store that remains until a person changes something. Errors of a running agent are never
    /// permanent: they may come from a message.
    private struct Permanent: Error {
        var cause: any Error

        static func causes(_ error: any Error) -> Bool {
            switch error {
            case is ConfigurationError: true
            case let error as StoreError: [.corrupt, .newerVersion, .invalidArgument].contains(error.code)
            case let error as BusError: error.code == .configuration
            default: false
            }
        }
    }
}
