/// Finds a short list of steps that still fails.
///
/// Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002.
struct Shrinker {
    let deadline: ContinuousClock.Instant
    let run: ([Int]) -> SimulationReport

    func shrink(_ report: SimulationReport) -> SimulationReport {
        guard let failure = report.failure else { return report }
        var best = report
        var size = max(1, best.steps.count / 2)
        while size >= 1, ContinuousClock.now < deadline {
            var start = 0
            var hasShrunk = false
            while start < best.steps.count, ContinuousClock.now < deadline {
                var steps = best.steps
                steps.removeSubrange(start..<min(steps.count, start + size))
                let attempt = run(steps)
                if attempt.failure?.check == failure.check {
                    best = attempt
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            if size == 1, !hasShrunk { break }
            size = max(1, hasShrunk && size == 1 ? 1 : size / 2)
        }
        return best
    }
}
