import Dispatch

/// Waits until something is so that another thread, or another process, makes so.
///
/// Looks again a hundred times a second, and rests in between: a test that waits leaves the machine to what it waits
/// for. Where other tests take all threads, what it waits for gets no more turns than it does itself: it looks a
/// hundred times before it gives up.
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
        // Asked before the look: what comes late, and is there at the look, is there.
        let isLast = ContinuousClock.now >= deadline && looks >= 100
        looks += 1
        if try await condition() { return }
        if isLast { throw TestFailure("never came: \(what)") }
    }
    throw CancellationError()
}
