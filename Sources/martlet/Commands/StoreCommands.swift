import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync
import Synchronization

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Make a store: an empty file, or Martlet's tables in an existing database.",
        discussion: "Does nothing to a file that is a store already. No table is tracked until it is attached.")

    @Argument(help: "The SQLite file.", completion: .file())
    var store: String
    @OptionGroup var output: JSONFlag

    func run() throws {
        let store = try Store.create(path: store)
        if output.json {
            try JSON.print(["store": store.identifier.uuidString, "path": store.path])
        } else {
            print(
                "\(store.path) is a store (\(store.identifier.uuidString)). Track its tables with: martlet attach \(store.path)"
            )
        }
    }
}

struct AttachCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attach", abstract: "Track tables: from now on every change of theirs is in the history.",
        discussion: """
            Makes a store of a plain database first. Without --table every table that can be tracked is. Programs that \
            write to the file need not know of it.
            """)

    @Argument(help: "The SQLite file.", completion: .file())
    var store: String
    @Option(name: .customLong("table"), help: "A table to track. May be repeated.")
    var tables: [String] = []
    @Option(
        name: .customLong("identity"),
        help: ArgumentHelp("Columns that identify a table's rows on every node.", valueName: "table=column,..."))
    var identities: [String] = []
    @Option(help: "A UUID: copies of one database that are attached with the same one agree on the IDs of their rows.")
    var seed: String?
    @Option(
        name: .customLong("unique-policy"),
        help: ArgumentHelp(
            "keepNewest (default) or keepOldest, for rows that claim one unique key.", valueName: "table=policy"))
    var policies: [String] = []
    @Flag(help: "Keep the values from before each change too.")
    var keepOldValues = false
    @Flag(
        help:
            "Put the rows that are there already into the history, so that they are published. Of tables that are tracked already: those that nobody was told of."
    )
    var publishExisting = false
    @OptionGroup var output: JSONFlag

    func run() throws {
        var request = AttachRequest()
        request.tables = tables
        for text in identities {
            let (table, columns) = try pair(text, "--identity")
            request.identities[table] = columns.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        for text in policies {
            let (table, name) = try pair(text, "--unique-policy")
            guard let policy = UniquePolicy(rawValue: name) else {
                let policies = UniquePolicy.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError(
                    "--unique-policy \(text): must be one of \(policies). To make two rows of one key the same row, let the key name it: --identity \(table)=column,..."
                )
            }
            request.uniquePolicies[table] = policy
        }
        if let seed {
            guard let uuid = UUID(uuidString: seed) else { throw ValidationError("--seed \(seed): is not a UUID") }
            request.seed = uuid
        }
        request.keepsOldValues = keepOldValues
        request.logsExistingRows = publishExisting
        request.logsUntoldRows = publishExisting
        guard FileManager.default.fileExists(atPath: store) else {
            throw StoreError(
                .notAStore, "There is no file at \(store).", hint: "Make a store with `martlet init \(store)`.")
        }
        try show(try attach(try Store.create(path: store), request))
    }

    /// With a bar where somebody sees it.
    private func attach(_ store: Store, _ request: AttachRequest) throws -> AttachReport {
        guard Terminal.isErrorOutput, !output.json else { return try store.attach(request) }
        let bar = Mutex(ProgressBar())
        defer { bar.withLock { $0.finish() } }
        return try store.attach(request) { progress in
            let what =
                switch progress.step {
                case .naming: "named"
                case .logging: "put into the history"
                }
            bar.withLock {
                $0.show(progress.rows, of: progress.rowCount, "rows of \(Text.visible(progress.table)) \(what)")
            }
        }
    }

    private func pair(_ text: String, _ option: String) throws -> (String, String) {
        guard let equal = text.lastIndex(of: "="), equal > text.startIndex, text.index(after: equal) < text.endIndex
        else {
            throw ValidationError("\(option) \(text): must be table=...")
        }
        return (String(text[..<equal]), String(text[text.index(after: equal)...]))
    }

    private func show(_ report: AttachReport) throws {
        if output.json {
            try JSON.print([
                "attached": report.attached.map { ["table": $0.name, "identity": identity($0)] },
                "alreadyTracked": report.alreadyTracked, "changed": report.changed,
                "refused": report.refused.map {
                    ["table": $0.table, "reason": $0.error.message, "hint": $0.error.hint]
                },
                "warnings": report.warnings, "existingRows": report.existingRowCount,
                "untoldRows": report.untoldRowCount,
            ])
        } else {
            for entity in report.attached { print("tracked   \(entity.name), known by \(identity(entity))") }
            for name in report.changed { print("changed   \(name): rows that are there keep their IDs") }
            for name in report.alreadyTracked { print("unchanged \(name) is tracked already") }
            for refusal in report.refused {
                say("refused   \(refusal.table): \(refusal.error.message) \(refusal.error.hint)")
            }
            for warning in report.warnings { say("warning   \(warning)") }
            if report.untoldRowCount > 0 {
                say(
                    "\(report.untoldRowCount) rows of tables that were tracked already are put into the history: nobody was told of them."
                )
            }
            if report.existingRowCount > 0, !publishExisting {
                say(
                    "\(report.existingRowCount) rows are there already. They are not published (--publish-existing does that)."
                )
            }
            if report.attached.isEmpty && report.alreadyTracked.isEmpty && report.changed.isEmpty {
                print("There is no table to track yet. Create some, and attach again.")
            }
        }
        if !report.refused.isEmpty { throw ExitCode(1) }
    }

    private func say(_ text: String) { print(Terminal.wrapped(text, indent: 10)) }

    private func identity(_ entity: Entity) -> String {
        switch entity.identity {
        case .hidden: "an ID that Martlet assigns"
        case .columns(let names): names.joined(separator: ", ")
        }
    }
}

struct AlterCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alter", abstract: "Run a script that changes the schema, with capture kept whole.",
        discussion:
            "One transaction: the whole script, or nothing. Needed for ALTER TABLE ... DROP COLUMN; good for any change."
    )

    @OptionGroup var store: StoreArgument
    @Argument(help: "A file of SQL statements.", completion: .file(extensions: ["sql"]))
    var file: String

    func run() throws {
        guard let sql = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw ValidationError("The script \(file) can't be read.")
        }
        let store = try store.open()
        try store.alter(sql: sql)
        print("The schema is changed. Tracked: \(try store.trackedEntities().map(\.name).joined(separator: ", "))")
        for lost in try store.lostEntities() { print("No longer tracked: \(lost.name): \(lost.reason)") }
    }
}

struct DigestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "digest", abstract: "Print what the synced rows come to: equal on nodes that agree.")

    @OptionGroup var store: StoreArgument
    @OptionGroup var output: JSONFlag

    func run() throws {
        let digest = try StoreDigest.compute(store.open())
        if output.json {
            try JSON.print([
                "digest": digest.digest,
                "entities": digest.entities.map { ["entity": $0.name, "rows": $0.rowCount, "digest": $0.digest] },
            ])
        } else {
            for entity in digest.entities { print("\(entity.digest)  \(entity.rowCount) rows  \(entity.name)") }
            print("\(digest.digest)  all")
        }
    }
}

struct ForkCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fork", abstract: "Give a store a name of its own: it is a copy, or was restored from a backup.",
        discussion: """
            Rows, history and clocks stay. What the topic has not shown of the store yet is published under the new name, and \
            what the former name published beyond the store is read as any other node's. The agent must not run.
            """)

    @OptionGroup var store: StoreArgument
    @OptionGroup var output: JSONFlag

    func run() throws {
        let report = try StoreMaintenance.fork(store: store.store)
        if output.json {
            return try JSON.print([
                "store": store.store, "node": report.node.description, "formerNode": report.former.description,
                "republished": report.republished, "unregistered": report.unregistered,
            ])
        }
        print("\(store.store) is node \(report.node) now. It was \(report.former).")
        print("\(report.republished) transactions that were not seen on the topic are published under the new name.")
        if report.unregistered > 0 {
            print(
                "\(report.unregistered) changes that no agent had taken up are published under it, too. Some of them may have been published "
                    + "under the former name since: then rows without a key of their own are there twice.")
        }
        print("Programs that keep tokens of its history begin to read it anew.")
    }
}
