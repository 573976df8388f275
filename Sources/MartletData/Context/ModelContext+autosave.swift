extension ModelContext {
    /// True where changes are saved without a call of ``save()``. False by default, and true for a container's main
    /// context.
    ///
    /// The main context and that of a ``ModelActor`` save soon after the change, on their own queue, many changes at
    /// once; for the main context, that queue has to run (an asynchronous `main` does). Nobody knows where another
    /// context is used: it saves what is pending before its next fetch. What fails stays pending, and is tried again
    /// with the next change; see ``autosaveError``.
    public var autosaveEnabled: Bool {
        get { autosave.isEnabled }
        set {
            autosave.isEnabled = newValue
            if newValue, hasChanges { autosave.changed(self) }
        }
    }

    /// Why the last save that nobody called failed. Nil once one succeeds. Not in SwiftData.
    public var autosaveError: (any Error)? { autosave.failure }

    /// Something is to be saved that wasn't.
    func pendingChanged() {
        if autosave.isEnabled { autosave.changed(self) }
        observers.changed()
    }
}
