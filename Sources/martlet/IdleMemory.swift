import CMartletSystem
import MartletAgent
import MartletSync
import ServiceLifecycle

/// Gives back what the start and each long catch-up took, once they are over: an agent that waits needs a third of its code, and
/// edge machines have better uses for the rest.
struct IdleMemory: Service {
    private static let interval = Duration.seconds(2)
    let agent: ReloadableAgent

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                var catchUp = CatchUp()
                // The start is work enough.
                var isDue = true
                while true {
                    try await Task.sleep(for: Self.interval)
                    let progress = agent.current.consumer.currentProgress
                    let isBusy = catchUp.line(progress, at: .now) != nil
                    // Before there is a position, the start isn't over.
                    if isDue, !isBusy, !progress.positions.isEmpty { martlet_release_memory() }
                    isDue = isBusy || (isDue && progress.positions.isEmpty)
                }
            }
        } catch is CancellationError {}
    }
}
