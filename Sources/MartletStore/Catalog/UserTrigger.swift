/// A trigger of the user's, and what becomes of its effects where changes of other nodes are applied.
///
/// There, the triggers of the file don't run: what they write to tracked tables arrives as changes of its own. What
/// they write to other tables does not arrive, so those that write to nothing else are run as copies.
package struct UserTrigger: Sendable, Equatable {
    package var name: String
    package var table: String
    /// Its place among all of them.
    var number: Int
    /// The tracked tables that its own statements write to.
    package var tracked: [String] = []
    /// The others.
    package var untracked: [String] = []
    /// Columns of other tracked tables that it sets from what they hold, like a counter: `counter.n`.
    package var counted: [String] = []
    /// Why no copy of it can run, as the end of a sentence. Nil where one does, or none is wanted.
    package var problem: String?
    /// True where its table says what becomes of a conflict.
    var isOfDecidingTable = false
    /// What makes the copy.
    var copy: String?

    /// True where it runs for changes of other nodes.
    package var isCopied: Bool { copy != nil }

    /// Those of which somebody should know: on tracked tables, and on what triggers of these write to.
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

    /// What somebody should know of it. Nil for nothing.
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
