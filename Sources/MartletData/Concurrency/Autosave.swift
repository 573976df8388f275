import Dispatch

/// Saves a context soon after it was changed, if the queue that the context belongs to is known.
///
/// Must be called where the context is used.
final class Autosave {
    /// Keeps the context until its save: nobody else may need it any more. Safe because the context is touched on its
    /// own queue only.
    private struct Reference: @unchecked Sendable {
        let context: ModelContext
    }

    /// The queue that uses the context. Nil if unknown.
    private var queue: DispatchQueue?
    private var isWaiting = false
    /// True during an attempt. What handlers of its notifications change is part of it.
    private var isSaving = false
    var isEnabled = false

    /// The error of the last attempt; nil again once one succeeds.
    var failure: (any Error)?

    func runs(on queue: DispatchQueue) { self.queue = queue }

    /// Schedules a save for when the current job has ended: one save for all changes that the job makes.
    func changed(_ context: ModelContext) {
        guard isEnabled, !isWaiting, !isSaving, let queue else { return }
        isWaiting = true
        let reference = Reference(context: context)
        queue.async {
            let context = reference.context
            context.autosave.isWaiting = false
            context.autosave.save(context)
        }
    }

    /// Saves pending changes before a fetch if no queue is known.
    func willFetch(_ context: ModelContext) throws {
        guard isEnabled, queue == nil, context.hasChanges else { return }
        try context.save()
    }

    private func save(_ context: ModelContext) {
        guard isEnabled, context.hasChanges else { return }
        isSaving = true
        defer { isSaving = false }
        do {
            try context.save()
            failure = nil
        } catch {
            // Everything is still pending. The next `save()` throws the error again, if its cause is still there.
            failure = error
        }
    }
}
