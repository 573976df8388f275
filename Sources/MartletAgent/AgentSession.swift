import Foundation
import Logging
import MartletStore
import MartletSync
import Synchronization

/// An agent inside a program that does something else.
///
/// Its thread waits for the store's lock, runs the agent, and starts it again after an error, so that a failed sync
/// does not take the program down. Nothing is lost meanwhile, because unsent changes are in the store's history.
final class AgentSession: StoreSyncSession {
    private let body: Body

    init(_ configuration: AgentConfiguration, log: Logger) {
        let body = Body(configuration, log)
        self.body = body
        Thread.begin("martlet.agent") { body.run() }
    }

    deinit { body.stop() }

    func stop() async {
        body.stop()
        await body.ended()
    }

    /// The state that the thread holds, so that it doesn't hold the session.
    private final class Body: Sendable {
        private struct State {
            var agent: Agent?
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

        func run() {
            var hasWaited = false
            var backoff = Backoff(from: .seconds(1), to: .seconds(60))
            while !signal.isStopped {
                let delay: Duration
                do {
                    let agent = try Agent(configuration, log: log)
                    backoff.reset()
                    let isWanted = state.withLock { state in
                        state.agent = agent
                        return !signal.isStopped
                    }
                    if isWanted { try agent.runUntilStopped() }
                    state.withLock { $0.agent = nil }
                    continue
                } catch let error as StoreError where error.code == .locked {
                    if !hasWaited { log.info("Another process is syncing this store; waiting for its turn") }
                    hasWaited = true
                    delay = .seconds(1)
                } catch let error as StoreError where error.code == .copied {
                    state.withLock { $0.agent = nil }
                    log.error(
                        "Store not synced: it may be a copy or a restored backup", metadata: ["error": "\(error)"])
                    delay = .seconds(60)
                } catch {
                    state.withLock { $0.agent = nil }
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
