import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync
import Synchronization

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Create a store: a new file, or Martlet's tables in an existing database.",
        discussion: "Does nothing if the file is a store already. No table is tracked until you attach it.")

    @Argument(help: "The SQLite file.", completion: .file())
    var store: String
    @OptionGroup var output: JSONFlag

    func run() throws {
        let store = try Store.create(path: store)
        if output.json {
            try JSON.print(["store": store.identifier.uuidString, "path": store.path])
        } else {
            print(
                """
                \(store.path) is a store (\(store.identifier.uuidString)). Track its tables with: \
                martlet attach \(ShellWord.quoted(store.path))
                """)
        }
    }
}

struct AttachCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attach", abstract: "Track tables: from then on, the history records every change to them.",
        discussion: """
            Turns a plain database into a store first. Without --table, tracks every table that can be tracked. \
            Programs that write to the file need no change.
            """)

    @Argument(help: "The SQLite file.", completion: .file())
    var store: String
    @Option(name: .customLong("table"), help: "A table to track. May be repeated.")
    var tables: [String] = []
    @Option(
        name: .customLong("identity"),
        help: ArgumentHelp("Columns that identify a table's rows on every node.", valueName: "table=column,..."))
    var identities: [String] = []
    @Option(help: "A UUID. Copies of one database that are attached with the same seed agree on the IDs of their rows.")
    var seed: String?
    @Option(
        name: .customLong("unique-policy"),
        help: ArgumentHelp(
            "keepNewest (default) or keepOldest, for rows that claim the same unique key.", valueName: "table=policy"))
    var policies: [String] = []
    @Flag(help: "Also record the values before each change.")
    var keepOldValues = false
    @Flag(
        help: """
            Add existing rows to the history, so that they are published. In tables that are already tracked, add the \
            rows that were never published.
            """)
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
                    """
                    --unique-policy \(text): must be one of \(policies). To treat two rows with the same key as one \
                    row, make the key their identity: --identity \(table)=column,...
                    """
                )
            }
            request.uniquePolicies[table] = policy
        }
        if let seed {
            guard let uuid = UUID(uuidString: seed) else { throw ValidationError("--seed \(seed): must be a UUID") }
            request.seed = uuid
        }
        request.keepsOldValues = keepOldValues
        request.logsExistingRows = publishExisting
        request.logsUnpublishedRows = publishExisting
        guard FileManager.default.fileExists(atPath: store) else {
            throw StoreError(
                .notAStore, "There is no file at \(store).",
                hint: "Create a store with `martlet init \(ShellWord.quoted(store))`.")
        }
        try show(try attach(try Store.create(path: store), request))
    }

    /// Shows a progress bar if standard error is a terminal.
    private func attach(_ store: Store, _ request: AttachRequest) throws -> AttachReport {
        guard Terminal.isErrorOutput, !output.json else { return try store.attach(request) }
        let bar = Mutex(ProgressBar())
        defer { bar.withLock { $0.finish() } }
        return try store.attach(request) { progress in
            let what =
                switch progress.step {
                case .naming: "given an ID"
                case .logging: "added to the history"
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
                "untoldRows": report.unpublishedRowCount,
            ])
        } else {
            for entity in report.attached { print("tracked   \(entity.name), identified by \(identity(entity))") }
            for name in report.changed { print("changed   \(name): existing rows keep their IDs") }
            for name in report.alreadyTracked { print("unchanged \(name): already tracked") }
            for refusal in report.refused {
                say("refused   \(refusal.table): \(refusal.error.message) \(refusal.error.hint)")
            }
            for warning in report.warnings { say("warning   \(warning)") }
            if report.unpublishedRowCount > 0 {
                say(
                    """
                    \(report.unpublishedRowCount) unpublished rows of already tracked tables were added to the history.
                    """
                )
            }
            if report.existingRowCount > 0, !publishExisting {
                say(
                    """
                    \(report.existingRowCount) existing rows are not published. To publish them, attach again with \
                    --publish-existing.
                    """
                )
            }
            if report.attached.isEmpty && report.alreadyTracked.isEmpty && report.changed.isEmpty
                && report.refused.isEmpty
            {
                print("There are no tables to track yet. Create some, then attach again.")
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
        commandName: "alter", abstract: "Run an SQL script that changes the schema, without interrupting capture.",
        discussion: """
            Runs the script in one transaction, as a whole or not at all. ALTER TABLE ... DROP COLUMN requires this \
            command; it works for any other change, too.
            """)

    @OptionGroup var store: StoreArgument
    @Argument(help: "A file of SQL statements.", completion: .file(extensions: ["sql"]))
    var file: String

    func run() throws {
        guard let sql = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw ValidationError("The script \(file) can't be read.")
        }
        let store = try store.open()
        try store.alter(sql: sql)
        print("The schema was changed. Tracked: \(try store.trackedEntities().map(\.name).joined(separator: ", "))")
        for lost in try store.lostEntities() { print("No longer tracked: \(lost.name): \(lost.reason)") }
    }
}

struct DigestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "digest", abstract: "Print a digest of the synced rows: equal on nodes that agree.")

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
        commandName: "fork", abstract: "Give a store that is a copy or a restored backup a node ID of its own.",
        discussion: """
            Rows, history and clocks stay. The node publishes those of its transactions that it has not seen on the \
            topic under the new ID. It reads the transactions that the former ID published and this store lacks like \
            those of another node. Stop the agent first.
            """)

    @OptionGroup var store: StoreArgument
    @OptionGroup var output: JSONFlag

    func run() throws {
        let report = try StoreMaintenance.fork(store: store.store)
        if output.json {
            return try JSON.print([
                "store": store.store, "node": report.node.description, "formerNode": report.former.description,
                "republished": report.republished, "unregistered": report.unstamped,
            ])
        }
        print("\(store.store) is now node \(report.node). It was \(report.former).")
        print("\(report.republished) transactions that were not seen on the topic will be published under the new ID.")
        if report.unstamped > 0 {
            print(
                """
                \(report.unstamped) changes that no agent had stamped will be published under it, too. Rows without \
                a key of their own will exist twice if their changes were published under the former ID as well.
                """)
        }
        print("Programs that keep history tokens of this store have to read its history from the beginning.")
    }
}
