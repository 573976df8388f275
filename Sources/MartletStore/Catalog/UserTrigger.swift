/// A user trigger, and the treatment of its effects when remote changes are applied.
///
/// The triggers of the file don't run then: what they write to tracked tables arrives as separate changes. What they
/// write to other tables does not arrive, so triggers that write only to such tables are run as copies.
package struct UserTrigger: Sendable, Equatable {
    package var name: String
    package var table: String
    /// Its position among all user triggers.
    var number: Int
    /// The tracked tables that its statements write to.
    package var tracked: [String] = []
    /// The untracked tables that its statements write to.
    package var untracked: [String] = []
    /// Columns of other tracked tables that it sets from their current values, like a counter: `counter.n`.
    package var counted: [String] = []
    /// Why no copy of it can run, as the end of a sentence. Nil if one does, or if none is wanted.
    package var problem: String?
    /// Whether its table has an ON CONFLICT clause.
    var isOfDecidingTable = false
    /// The SQL that creates the copy.
    var copy: String?

    /// Whether the trigger runs for remote changes.
    package var isCopied: Bool { copy != nil }

    /// Returns the triggers that deserve a warning: those on tracked tables, and on tables to which such triggers
    /// write.
    package static func noteworthy(_ triggers: [UserTrigger], tracked: [String]) -> [UserTrigger] {
        var tables = Set(tracked.map { $0.lowercased() })
        var count = 0
        while count != tables.count {
            count = tables.count
            for trigger in triggers where tables.contains(trigger.table.lowercased()) {
                tables.formUnion(trigger.untracked)
            }
        }
        return triggers.filter { $0.warning != nil && tables.contains($0.table.lowercased()) }
    }

    /// The warning about the trigger. Nil if there is none.
    package var warning: String? {
        let it = "Trigger \(name) of table \(table)"
        let untracked = untracked.joined(separator: ", ")
        if let problem {
            let what = untracked.isEmpty ? "tables that are not tracked" : untracked
            return "\(it) \(problem). Its writes to \(what) happen only on the node where a program wrote."
        }
        if !tracked.isEmpty, !untracked.isEmpty {
            return
                """
                \(it) writes to \(tracked.joined(separator: ", ")), which Martlet tracks, and to \(untracked), which \
                it does not: its writes to \(untracked) happen only on the node where a program wrote. Split it into \
                two triggers, one for each kind of table.
                """
        }
        guard !counted.isEmpty else { return nil }
        return
            """
            \(it) computes \(counted.joined(separator: ", ")) from current values, and the table is tracked: if two \
            nodes compute it at the same time, the last result wins. Keep such values in a table that is not tracked: \
            then each node computes its own.
            """
    }
}
