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
            /// The error of the last attempt.
            var error: (any Error)?
            /// The error that ended the session.
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

        var failure: (any Error)? { state.withLock { $0.failure } }

        func run() {
            var cycle = SessionCycle()
            var action: SessionCycle.Action? = .open
            while let present = action { action = perform(present).map { cycle.handle($0) } }
            let waiting = state.withLock { state in
                state.hasEnded = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }

        /// - Returns: what came of it; nil after the end.
        private func perform(_ action: SessionCycle.Action) -> SessionCycle.Event? {
            switch action {
            case .open: return open()
            case .run: return runAgent()
            case .wait(let delay, let notice):
                tell(notice)
                signal.wait(timeout: delay)
                return signal.isStopped ? .stopped : .waited
            case .end(let notice):
                tell(notice)
                return nil
            }
        }

        private func open() -> SessionCycle.Event {
            do {
                let agent: Agent? = signal.isStopped ? nil : try Agent(configuration, log: log)
                let isWanted = state.withLock { state in
                    state.agent = agent
                    return !signal.isStopped
                }
                return isWanted ? .opened(at: .now) : end()
            } catch {
                return fail(error)
            }
        }

        private func runAgent() -> SessionCycle.Event {
            defer { state.withLock { $0.agent = nil } }
            do {
                try state.withLock { $0.agent }?.runUntilStopped()
                return signal.isStopped ? .stopped : .finished
            } catch {
                return fail(error)
            }
        }

        /// An agent that was stopped before it ran releases the store together with its last reference.
        private func end() -> SessionCycle.Event {
            state.withLock { $0.agent = nil }
            return .stopped
        }

        private func fail(_ error: any Error) -> SessionCycle.Event {
            state.withLock { $0.error = error }
            return .failed(error, at: .now)
        }

        /// Logs what the last error means.
        private func tell(_ notice: SessionCycle.Notice?) {
            guard let notice, let error = state.withLock({ $0.error }) else { return }
            let metadata: Logger.Metadata = ["error": "\(error)"]
            switch notice {
            case .waitsForItsTurn: log.info("Another process is syncing this store; waiting for its turn")
            case .copied:
                log.error("Store not synced: it may be a copy or a restored backup", metadata: metadata)
            case .failed: log.error("Store not synced; will retry", metadata: metadata)
            case .ended:
                state.withLock { $0.failure = error }
                log.error("Sync ended", metadata: metadata)
            }
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
}
