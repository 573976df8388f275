import Foundation
import MartletStore

/// Examines the data that the user's triggers derive from tracked tables.
enum DerivedDoctor {
    static func examine(_ store: Store, path: String) -> [Finding] {
        do {
            return try judge(store.examineDerived(), path: path)
        } catch {
            return [
                Finding(
                    check: "derived data", level: .warning, message: "it can't be examined: \(error)",
                    remedy: "Fix the other problems of the store first.")
            ]
        }
    }

    private static func judge(_ facts: DerivedFacts, path: String) -> [Finding] {
        var findings: [Finding] = []
        func add(_ check: String, _ problems: [String], ok: String, remedy: String) {
            findings.append(
                Finding(
                    check: check, level: problems.isEmpty ? .ok : .warning,
                    message: problems.isEmpty ? ok : problems.joined(separator: " "),
                    remedy: problems.isEmpty ? nil : remedy))
        }
        add(
            "your triggers", facts.triggers.compactMap(\.warning), ok: "they have the same effect on every node",
            remedy: "See \"What your own triggers do\" in docs/merging.md.")
        if !facts.undeclared.isEmpty {
            add(
                "references", facts.undeclared.map(\.warning), ok: "",
                remedy: "See \"Integer keys of rows\" in docs/merging.md.")
        }
        if !facts.numbered.isEmpty {
            add(
                "numbers", facts.numbered.map(\.warning), ok: "",
                remedy: "See \"Integer keys of rows\" in docs/merging.md.")
        }
        add(
            "derived data",
            facts.failures.map { failure in
                "Trigger \(failure.trigger) of table \(failure.table) failed on \(failure.count) "
                    + "remote \(failure.count == 1 ? "change" : "changes") since the agent's start: \(failure.message)."
            }, ok: "no trigger has failed on a remote change",
            remedy:
                "The rows were applied. Rebuild the data that the trigger derives (an index), and restart the agent."
        )
        if let unexamined = facts.unexamined {
            add(
                "indexes", ["Full-text indexes were not examined: \(unexamined)."], ok: "",
                remedy: "Set TMPDIR to a folder with more space, and run the doctor again.")
            return findings
        }
        let broken = facts.indexes.filter { $0.problem != nil }
        let rebuilds = broken.compactMap(\.rebuild).map { "sqlite3 \(ShellWord.quoted(path)) \(ShellWord.quoted($0))" }
        add(
            "indexes", broken.map { "\($0.name) \($0.problem ?? "")." },
            ok: "full-text indexes match their tables",
            remedy: rebuilds.isEmpty
                ? "Rebuild it from your data."
                : "Unless your triggers leave rows out on purpose, run: \(rebuilds.joined(separator: "; "))")
        return findings
    }
}
