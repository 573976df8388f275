import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

extension HistoryTail.Start: ExpressibleByArgument {}

extension HistoryCommand {
    struct Tail: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "tail", abstract: "Print transactions as they are committed, until stopped.",
            discussion: """
                With --json, prints one object per line, as `martlet history list --json` does.

                With --cursor, the command continues where it ended the last time, and the store keeps the history \
                that the cursor has not passed. Each transaction is printed at least once: the cursor moves when a \
                batch of transactions, of about 1,000 changes or 256 KiB at most, has been written to standard \
                output. Lines that were still in a pipe when their reader ended are not printed again, unless the \
                reader acknowledges: with --acknowledge, the cursor moves only to tokens that the command reads from \
                standard input, one on each line.

                A new cursor begins with the oldest transaction, or with --start newest after the newest one. If \
                history after the position has been deleted, the command prints the object {"event": "reload", \
                "token": TOKEN}, and exits with code 3. Then load the rows from their tables, and continue with \
                --after TOKEN, which also moves the cursor.

                Exit codes: 0 when standard output is closed, at the end with --no-follow, or when standard input is \
                closed with --acknowledge; 3 when the history is no longer complete; 1 after any other error, such as \
                a store that was moved or replaced.
                """)
        @OptionGroup var store: StoreArgument
        @OptionGroup var filters: Filters
        @Option(help: ArgumentHelp("Remember the position under this name.", valueName: "name"))
        var cursor: String?
        @Option(
            help: ArgumentHelp(
                """
                Where to begin without --after and without a cursor of that name: oldest or newest. (default: oldest \
                with --cursor, newest without)
                """, valueName: "start"))
        var start: HistoryTail.Start?
        @Flag(help: "Move the cursor to the tokens on standard input. Needs --cursor and --json.")
        var acknowledge = false
        @Flag(help: "Print what there is, and end.")
        var noFollow = false
        @OptionGroup var output: JSONFlag

        /// The exit code if the history after the position is not complete.
        private static let reload: Int32 = 3

        func validate() throws {
            guard start == nil || filters.after == nil else { throw ValidationError("Give either --after or --start.") }
            guard !acknowledge || cursor != nil && output.json else {
                throw ValidationError("--acknowledge needs --cursor and --json.")
            }
            guard !noFollow || cursor != nil || filters.after != nil || start == .oldest else {
                throw ValidationError(
                    "--no-follow prints what there is after a position: add --cursor, --after or --start oldest.")
            }
        }

        func run() throws {
            let lines = LineOutput()
            let opened = try store.open()
            do {
                try run(opened, lines)
            } catch is LineOutput.Closed {
                return
            } catch let error as StoreError where error.code == .historyTokenExpired {
                try report(error, HistoryTail.newest(in: opened), lines)
                throw ExitCode(Self.reload)
            }
        }

        private func run(_ opened: Store, _ lines: LineOutput) throws {
            let watcher = noFollow ? nil : try WALWatcher(store: opened.path)
            let tail = try HistoryTail(
                opened, filters.query(), cursor: cursor, start: start ?? (cursor == nil ? .newest : .oldest),
                acknowledges: acknowledge)
            let ending = TailEnding(waitsForLock: !noFollow) { watcher?.stop() }
            let input = acknowledge ? TailInput(for: tail, ending) : nil
            Thread.detachNewThread {
                lines.waitUntilClosed()
                ending.end()
            }
            func readAll() throws {
                while !ending.isDone, try ending.withStore({ try tail.read { try lines.write(text($0)) } }) {}
            }
            do {
                try readAll()
                if let watcher {
                    watcher.run {
                        do { try readAll() } catch { ending.end(error) }
                    }
                } else if acknowledge {
                    ending.waitUntilSettled(tail)
                }
            } catch {
                ending.end(error)
            }
            do { try input?.takeRest() } catch { ending.end(error) }
            if let error = ending.error { throw error }
        }

        private func text(_ transaction: HistoryTransaction) throws -> String {
            try HistoryCommand.text(transaction, json: output.json) + "\n"
        }

        /// Says what a reader has to do whose position is not in the history any more.
        private func report(_ error: StoreError, _ newest: HistoryToken, _ lines: LineOutput) throws {
            guard output.json else {
                ErrorOutput.write("\(EscapedText.escapedLines("\(error)"))\nThe newest token is \(newest).\n")
                return
            }
            let event: [String: Any?] = ["event": "reload", "token": newest.description, "message": error.message]
            try? lines.write(JSON.line(event) + "\n")
        }
    }
}
