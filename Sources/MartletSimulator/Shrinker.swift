/// Finds a short list of steps and statements, and a small schema, that still fail.
///
/// Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002.
struct Shrinker {
    let deadline: ContinuousClock.Instant
    let run: (SimulationOptions) -> SimulationReport

    func shrink(_ report: SimulationReport) -> SimulationReport {
        guard report.failure != nil else { return report }
        var best = report
        // Leaving out one kind may allow leaving out more of another.
        for _ in 0..<4 where ContinuousClock.now < deadline {
            let before = (best.steps.count, best.statements.count, best.partCount)
            minimize(&best, { $0.steps }) { options, left in
                options.kept = left
            }
            let parts = { (report: SimulationReport) in
                Array(0..<report.partCount).filter { !report.options.withoutParts.contains($0) }
            }
            let allParts = Set(0..<best.partCount)
            minimize(&best, parts) { options, left in options.withoutParts = allParts.subtracting(left).sorted() }
            let allStatements = Set(best.statements + best.options.withoutStatements)
            minimize(&best, { $0.statements }) { options, left in
                options.withoutStatements = allStatements.subtracting(left).sorted()
            }
            if before == (best.steps.count, best.statements.count, best.partCount) { break }
        }
        return best
    }

    /// - Parameters:
    ///   - items: the items that can be left out of a run.
    ///   - leave: changes options so that only these items are left.
    private func minimize(
        _ best: inout SimulationReport, _ items: (SimulationReport) -> [Int],
        _ leave: (inout SimulationOptions, [Int]) -> Void
    ) {
        var size = max(1, items(best).count / 2)
        while size >= 1, ContinuousClock.now < deadline {
            var start = 0
            var hasShrunk = false
            while start < items(best).count, ContinuousClock.now < deadline {
                var left = items(best)
                left.removeSubrange(start..<min(left.count, start + size))
                var options = best.options
                leave(&options, left)
                let attempt = run(options)
                if attempt.failure?.isLike(best.failure) ?? false, items(attempt).count < items(best).count {
                    best = attempt
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            if size == 1, !hasShrunk { break }
            size = max(1, size / 2)
        }
    }
}
