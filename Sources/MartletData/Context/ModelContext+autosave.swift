extension ModelContext {
    /// Whether changes are saved without a call of ``save()``. False by default, and true for a container's main
    /// context.
    ///
    /// The main context and the context of a ``ModelActor`` save soon after a change, on their own queue, many changes
    /// at once; for the main context, that queue has to run (an asynchronous `main` does). For other contexts, the
    /// queue is unknown: they save pending changes before their next fetch. Changes that can't be saved stay pending,
    /// and are saved again with the next change; see ``autosaveError``. After a getter could not read the store,
    /// nothing is saved until ``rollback()``; see ``save()``.
    public var autosaveEnabled: Bool {
        get { autosave.isEnabled }
        set {
            autosave.isEnabled = newValue
            if newValue, hasChanges { autosave.changed(self) }
        }
    }

    /// The error of the last automatic save. Nil once one succeeds. Not in SwiftData.
    public var autosaveError: (any Error)? { autosave.failure }

    /// Must be called whenever there is something new to save.
    func pendingChanged() {
        pendingChangedAgain()
        observers.changed()
    }

    /// Must be called whenever something changes that is to be saved already: the last automatic save may have failed.
    func pendingChangedAgain() {
        if autosave.isEnabled { autosave.changed(self) }
    }
}
