import Dispatch

/// Saves a context soon after it was changed, where it is known which queue the context belongs to.
///
/// Used where the context is used.
final class Autosave {
    /// Safe because the context is touched on its own queue only.
    private struct Reference: @unchecked Sendable {
        weak var context: ModelContext?
    }

    /// The queue that the context's users run on. Absent where nobody knows.
    private var queue: DispatchQueue?
    private var isWaiting = false
    var isEnabled = false

    /// Why the last attempt failed, until one succeeds.
    var failure: (any Error)?

    func runs(on queue: DispatchQueue) { self.queue = queue }

    /// Saves when the job that makes the change has ended, once for all changes that it makes.
    func changed(_ context: ModelContext) {
        guard isEnabled, !isWaiting, let queue else { return }
        isWaiting = true
        let reference = Reference(context: context)
        queue.async {
            guard let context = reference.context else { return }
            context.autosave.isWaiting = false
            context.autosave.save(context)
        }
    }

    /// Where no queue is known, fetches save what is pending before them.
    func willFetch(_ context: ModelContext) throws {
        guard isEnabled, queue == nil, context.hasChanges else { return }
        try context.save()
    }

    private func save(_ context: ModelContext) {
        guard isEnabled, context.hasChanges else { return }
        do {
            try context.save()
            failure = nil
        } catch {
            // Nothing is lost: everything is still pending, and `save()` throws it again.
            failure = error
        }
    }
}
