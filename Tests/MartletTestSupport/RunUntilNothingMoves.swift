/// Repeats a step until it says that nothing moved.
///
/// Use it instead of a loop whose condition does the work: a state that never comes to rest fails the test here, and
/// does not hang it.
/// - Parameters:
///   - what: the work, for the failure.
///   - limit: the number of steps within which nothing may be left to move.
///   - step: does one piece of the work. Returns false if nothing moved.
/// - Throws: ``TestFailure`` if something still moves after `limit` steps, or what `step` throws.
package func runUntilNothingMoves(_ what: String, limit: Int = 1_000_000, _ step: () throws -> Bool) throws {
    for _ in 0..<limit {
        let moved = try step()
        if !moved { return }
    }
    throw TestFailure("\(what) does not end: something still moves after \(limit) steps")
}
