import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Read or prune the history of a store.",
        subcommands: [List.self, Tail.self, Show.self, Prune.self, Cursors.self])

    struct Filters: ParsableArguments {
        @Option(help: "Only transactions after this token.")
        var after: String?
        @Option(help: "Only this author's transactions.")
        var author: String?
        @Option(help: "Leave out this author's transactions (martlet.sync: those from other nodes).")
        var excludeAuthor: String?
        @Flag(help: "Only transactions without an author.")
        var noAuthor = false
        @Option(name: .customLong("entity"), help: "Only transactions that change this table. May be repeated.")
        var entities: [String] = []

        func query() throws -> HistoryQuery {
            var query = HistoryQuery()
            guard [author != nil, excludeAuthor != nil, noAuthor].count(where: \.self) <= 1 else {
                throw ValidationError("Give only one of --author, --exclude-author and --no-author.")
            }
            if let author { query.author = .equal(author) }
            if let excludeAuthor { query.author = .notEqual(excludeAuthor) }
            if noAuthor { query.author = .absent }
            query.entities = entities
            query.after = try after.map(token)
            return query
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List transactions, oldest first.",
            discussion: """
                With --json, prints one object per line: transaction, token, author, origin, traceID, timestamp, \
                changes.
                """)
        @OptionGroup var store: StoreArgument
        @OptionGroup var filters: Filters
        @Option(help: "Print at most this many.")
        var limit: Int?
        @Flag(help: "Newest first.")
        var reverse = false
        @OptionGroup var output: JSONFlag

        func run() throws {
            var query = try filters.query()
            query.limit = limit
            query.newestFirst = reverse
            for transaction in try store.open().fetchHistory(query) { try show(transaction, json: output.json) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show one transaction with all its changes.")
        @OptionGroup var store: StoreArgument
        @Argument(help: "The transaction's number, as `history list` prints it.")
        var transaction: Int64
        @OptionGroup var output: JSONFlag

        func run() throws {
            let store = try store.open()
            guard let found = try store.transaction(transaction) else {
                throw StoreError(
                    .invalidArgument, "There is no transaction \(transaction).",
                    hint: "It may have been pruned. List the remaining ones with `martlet history list`.")
            }
            try HistoryCommand.show(found, json: output.json, allChanges: true)
        }
    }

    struct Prune: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "prune", abstract: "Delete old history that no cursor needs any more.")
        @OptionGroup var store: StoreArgument
        @Option(help: "Delete up to and including this token.")
        var through: String?
        @Option(help: "Delete transactions older than this, for example 30d.")
        var olderThan: String?

        func run() throws {
            let store = try store.open()
            let report: PruneReport
            switch (through, olderThan) {
            case (let text?, nil): report = try store.deleteHistory(through: token(text))
            case (nil, let text?):
                guard let age = Duration(text: text) else {
                    throw ValidationError("--older-than \(text): must be a duration such as 30d, 12h or 10m")
                }
                report = try store.deleteHistory(before: Date(timeIntervalSinceNow: -(age / .seconds(1))))
            default: throw ValidationError("Give either --through or --older-than.")
            }
            try Outbox.trim(store)
            print("Deleted \(report.deletedCount) rows of history, through \(report.deletedThrough).")
            if let holder = report.heldBackBy {
                print("The cursor \(Text.visible(holder)) still needs the rest. \(report.hint ?? "")")
            }
        }
    }

    static func token(_ text: String) throws -> HistoryToken {
        guard let token = HistoryToken(text) else {
            throw ValidationError("\(text) is not a history token. Print tokens with `martlet history list --json`.")
        }
        return token
    }

    static func show(_ transaction: HistoryTransaction, json: Bool, allChanges: Bool = false) throws {
        print(try text(transaction, json: json, allChanges: allChanges))
    }

    /// Returns what the commands print of a transaction, without the last line break.
    static func text(_ transaction: HistoryTransaction, json: Bool, allChanges: Bool = false) throws -> String {
        if json { return try JSON.line(transaction.document) }
        var head = "\(transaction.id)  \(Text.time(transaction.timestamp))  \(transaction.author ?? "(no author)")"
        if let origin = transaction.origin {
            head +=
                "  from \(origin.name ?? origin.node.uuidString) #\(origin.sequence)"
                + (origin.author.map { " by \($0)" } ?? "")
        }
        if let context = transaction.context { head += "  [\(context)]" }
        var lines = [Terminal.wrapped(Text.visible(head), indent: 8)]
        let shown = allChanges ? transaction.changes[...] : transaction.changes.prefix(10)
        for change in shown {
            let detail =
                switch change.kind {
                case .insert: Text.values(change.values)
                case .update:
                    change.values.sorted { $0.key < $1.key }.map { name, value in
                        "\(Text.visible(name))=\(Text.value(value))"
                            + (change.oldValues[name].map { " (was \(Text.value($0)))" } ?? "")
                    }.joined(separator: " ")
                case .delete: Text.values(change.tombstone)
                }
            let row = "\(Text.visible(change.entity)) \(Text.identity(change.identity))"
            let line = "    \(change.kind.rawValue) \(row)  \(detail)"
            lines.append(Terminal.wrapped(line, indent: 8))
        }
        if shown.count < transaction.changes.count {
            lines.append("    ... and \(transaction.changes.count - shown.count) more")
        }
        return lines.joined(separator: "\n")
    }
}
