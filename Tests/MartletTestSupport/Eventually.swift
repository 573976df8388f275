import Dispatch

/// Waits for a condition that another thread or process makes true.
///
/// Checks the condition a hundred times a second and sleeps in between, so that the waiting test leaves the machine to
/// the work it waits for. If other tests occupy all threads, that work gets no more turns than this loop does. So the
/// loop checks at least a hundred times before it gives up.
/// - Throws: ``TestFailure`` at the deadline, what `condition` throws, or `CancellationError`.
package func eventually(
    _ what: String, within time: Duration = .seconds(60), _ condition: () async throws -> Bool
) async throws {
    if try await condition() { return }
    let deadline = ContinuousClock.now + time
    let (ticks, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.schedule(deadline: .now() + .milliseconds(10), repeating: .milliseconds(10))
    timer.setEventHandler { signal.yield() }
    timer.activate()
    defer { timer.cancel() }
    var looks = 0
    for await _ in ticks {
        // Determined before the check, so that a condition that comes true late, but before the check, still counts.
        let isLast = ContinuousClock.now >= deadline && looks >= 100
        looks += 1
        if try await condition() { return }
        if isLast { throw TestFailure("never came: \(what)") }
    }
    throw CancellationError()
}
