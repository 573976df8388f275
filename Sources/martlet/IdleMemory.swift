import CMartletSystem
import MartletAgent
import MartletSync
import ServiceLifecycle

/// Releases the memory that the start and each long catch-up took, once they are over: an idle agent needs a third of
/// its code, and edge machines have better uses for the rest.
struct IdleMemory: Service {
    let agent: ReloadableAgent

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                var watch = IdleWatch()
                while true {
                    try await Task.sleep(for: IdleWatch.interval)
                    if watch.look(agent.current.consumer.currentProgress, at: .now) { martlet_release_memory() }
                }
            }
        } catch is CancellationError {}
    }
}
