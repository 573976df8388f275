import MartletStore

/// How far the log is stamped. The enqueuer moves it, the outbox's parts with it; the session moves it past what was
/// applied.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class StampProgress {
    /// The newest change that is known to have its clocks. Later ones may have them already.
    package private(set) var through: Int64?
    /// The mark of the transaction that ``through`` is in the middle of. Nil also if it is not known.
    package private(set) var openTransaction: Int64?
    private let notes: CommitNotes

    init(_ notes: CommitNotes) {
        self.notes = notes
    }

    /// Records that all changes up to this one have their clocks.
    ///
    /// - Parameter open: the mark of the transaction that the change is in the middle of.
    func advance(through id: Int64, in open: Int64? = nil) {
        notes.add(MetaKey.stamped, id)
        through = id
        openTransaction = open
    }

    /// Takes over what the store says.
    func take(stored id: Int64) { through = id }
}
