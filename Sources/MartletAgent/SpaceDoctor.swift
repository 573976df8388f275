package import MartletStore

/// Examines what a store's history and file take.
package enum SpaceDoctor {
    static func examine(_ store: Store, path: String) -> [Finding] {
        do {
            return [judge(try store.historyReport()), judge(try store.fileSpace(), path: path)]
        } catch {
            return [
                Finding(
                    check: "history", level: .warning, message: "it can't be measured: \(error)",
                    remedy: "Fix the other problems of the store first.")
            ]
        }
    }

    /// Warns of a cursor that keeps much more than the agent's bounds: its program is likely gone.
    package static func judge(_ history: HistoryReport) -> Finding {
        let size = SizeText.bytes(history.size.bytes)
        let most = max(minHeldBytes, (history.bounds?.sizeBytes ?? 0) / 4)
        guard let held = history.held, held.bytes > most else {
            return Finding(check: "history", level: .ok, message: "\(size), \(SizeText.bounds(history.bounds))")
        }
        let moved = JSON.date(held.updated).map { " (last moved \($0))" } ?? ""
        return Finding(
            check: "history", level: .warning,
            message: """
                the cursor \(held.cursor)\(moved) keeps \(SizeText.bytes(held.bytes)) of the history's \(size) from \
                being deleted (\(SizeText.bounds(history.bounds)))
                """,
            remedy: held.hint)
    }

    /// Warns of a file that is mostly free pages, unless the agent gives them back.
    package static func judge(_ file: FileSpace, path: String) -> Finding {
        guard file.freeBytes > minFreeBytes, file.freeBytes > file.bytes / 2, !file.isShrinkable else {
            return Finding(check: "file", level: .ok, message: SizeText.space(file))
        }
        return Finding(
            check: "file", level: .warning, message: SizeText.space(file),
            remedy: """
                SQLite uses that space again. To make the file smaller instead, stop the agent and all other \
                programs, and run: sqlite3 \(ShellWord.quoted(path)) 'PRAGMA auto_vacuum = 2; VACUUM'. From then \
                on the agent gives free space back
                """)
    }

    /// What a publisher may keep for an hour without being stuck, and what nobody would clean up for.
    private static let minHeldBytes: Int64 = 64 << 20
    private static let minFreeBytes: Int64 = 64 << 20
}
