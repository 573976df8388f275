import ArgumentParser
import Foundation
import MartletAgent
import MartletStore

extension HistoryCommand {
    struct Cursors: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cursors",
            abstract: "List the readers of the history and how far each has read; remove one that is gone.",
            discussion: """
                Martlet never deletes history that a cursor has not passed. If a program is gone for good, its cursor \
                stays and the history grows: remove the cursor with `martlet history cursors remove`. If the program \
                returns after that, `martlet history tail` tells it to load the rows. The publisher's cursor can't be \
                removed.
                """,
            subcommands: [List.self, Remove.self], defaultSubcommand: List.self)

        struct List: ParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "list", abstract: "List the readers, the one that is furthest behind first.",
                discussion: """
                    Shows what each cursor keeps from being deleted: the transactions that its reader has not passed, \
                    and their estimated size. With --json, prints one object per line: cursor, token, transaction, \
                    last, updated, ageSeconds, unreadTransactions, heldBytes.
                    """)
            @OptionGroup var store: StoreArgument
            @Option(help: ArgumentHelp("Remove this cursor, as `remove` does. Needs --yes.", valueName: "name"))
            var remove: String?
            @Flag(help: "Confirm --remove.")
            var yes = false
            @OptionGroup var output: JSONFlag

            func validate() throws {
                if remove != nil, !yes {
                    throw ValidationError(
                        "--remove deletes the reader's position in the history. Add --yes to confirm.")
                }
                if yes, remove == nil { throw ValidationError("--yes requires --remove.") }
            }

            func run() throws {
                if let remove { return try Cursors.remove(remove, store) }
                let opened = try store.open(readOnly: true)
                let cursors = try opened.cursorReports()
                let last = try opened.lastToken()?.transaction ?? 0
                if cursors.isEmpty, !output.json { print("The history has no cursors.") }
                for report in cursors {
                    if output.json {
                        try JSON.print(object(report, last))
                    } else {
                        print(line(report, last))
                    }
                }
            }

            private func object(_ report: CursorReport, _ last: Int64) -> [String: Any?] {
                let cursor = report.cursor
                return [
                    "cursor": cursor.name, "token": cursor.token.description, "transaction": cursor.token.transaction,
                    "last": last, "updated": JSON.date(cursor.updated),
                    "ageSeconds": Int64(max(0, -cursor.updated.timeIntervalSinceNow)),
                    "unreadTransactions": report.transactions, "heldBytes": report.bytes,
                ]
            }

            private func line(_ report: CursorReport, _ last: Int64) -> String {
                let read = report.cursor.token.transaction
                let count = report.transactions
                let place =
                    count == 0
                    ? "has read all"
                    : """
                    has read up to \(read) of \(last), holds back \(count) \
                    \(count == 1 ? "transaction" : "transactions") (\(SizeText.bytes(report.bytes)))
                    """
                return
                    "\(Text.visible(report.cursor.name))  \(place), moved \(Text.time(report.cursor.updated))"
            }
        }

        struct Remove: ParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "remove", abstract: "Remove the cursor of a reader that is gone for good.",
                discussion: """
                    The history after the cursor is deleted when the agent prunes it the next time, unless another \
                    cursor, or the agent's configuration, keeps it.
                    """)
            @OptionGroup var store: StoreArgument
            @Argument(help: "The cursor's name, as `martlet history cursors` prints it.")
            var name: String

            func run() throws { try Cursors.remove(name, store) }
        }

        private static func remove(_ name: String, _ store: StoreArgument) throws {
            guard try store.open().removeCursor(name) else {
                throw StoreError(
                    .invalidArgument, "There is no cursor \(name).",
                    hint: "List them with `martlet history cursors \(ShellWord.quoted(store.store))`.")
            }
            print("Removed the cursor \(Text.visible(name)).")
        }
    }
}
