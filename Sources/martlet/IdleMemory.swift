import CMartletSystem
import MartletAgent
import MartletSync
import ServiceLifecycle

/// Releases the memory that the start and each long catch-up took, once they are over: an idle agent needs a third of
/// its code, and edge machines have better uses for the rest.
struct IdleMemory: Service {
    private static let interval = Duration.seconds(2)
    private static let quietTicks = 2
    let agent: ReloadableAgent

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                var catchUp = CatchUp()
                // The start counts as work.
                var quietTicks: Int? = 0
                while true {
                    try await Task.sleep(for: Self.interval)
                    let progress = agent.current.consumer.currentProgress
                    guard catchUp.line(progress, at: .now) == nil else {
                        quietTicks = 0
                        continue
                    }
                    quietTicks = quietTicks.map { $0 + 1 }
                    if quietTicks == Self.quietTicks {
                        martlet_release_memory()
                        quietTicks = nil
                    }
                }
            }
        } catch is CancellationError {}
    }
}
