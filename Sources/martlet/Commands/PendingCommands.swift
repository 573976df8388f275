import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct ParkedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "parked",
        abstract: "List changes that can't be applied yet, with the reason; retry or discard them.",
        discussion: """
            Martlet retries a parked change by itself as soon as the row, schema or time that it waits for arrives. \
            --retry retries all of them now; stop the agent first. --discard removes one permanently: this node then \
            differs from the others until somebody writes the same row or column again. It always requires --yes, \
            and works while an agent runs.
            """)

    @OptionGroup var store: StoreArgument
    @Flag(help: "Include updates of deleted rows, which apply only if the row is inserted again.")
    var all = false
    @Flag(help: "Retry all changes now. Stop the agent first.")
    var retry = false
    @Option(help: ArgumentHelp("Discard the change with this ID, permanently.", valueName: "id"))
    var discard: String?
    @Flag(help: "Confirm --discard: this node may then differ from the others.")
    var yes = false
    @OptionGroup var agent: StoppedAgentOptions
    @OptionGroup var output: JSONFlag

    func validate() throws {
        if retry, discard != nil { throw ValidationError("Give --retry or --discard, not both.") }
        if yes, discard == nil { throw ValidationError("--yes requires --discard.") }
    }

    func run() throws {
        if retry { return try retryAll() }
        if let discard { return try discardParked(discard) }
        let items = try store.open(readOnly: true).parked(includingDeleted: all)
        for item in items { try show(item) }
        if items.isEmpty && !output.json { print("Nothing is parked.") }
    }

    private func retryAll() throws {
        let report = try StoreMaintenance.retryParked(store: store.store, configuration: agent.configuration())
        if output.json { return try JSON.print(["before": report.before, "after": report.after]) }
        print("Parked before: \(report.before). Parked now: \(report.after).")
    }

    private func discardParked(_ id: String) throws {
        guard yes else {
            let items = try store.open(readOnly: true).parked(includingDeleted: true)
            guard let item = items.first(where: { $0.id == id }) else { throw ParkedItem.unknown(id) }
            throw ValidationError(
                """
                Nothing was discarded. If you discard this change, the node differs from the others until somebody \
                writes the same row or column again: \(line(item))
                Add --yes if that is what you want.
                """)
        }
        let item = try store.open().discardParked(id)
        if output.json { try JSON.print(["discarded": item.id]) } else { print("Discarded: \(line(item))") }
    }

    private func show(_ item: ParkedItem) throws {
        guard output.json else { return print(Terminal.wrapped(line(item), indent: 4)) }
        try JSON.print([
            "id": item.id, "reason": item.reason.rawValue, "detail": item.detail, "entity": item.entity,
            "identity": JSON.identity(item.identity), "origin": item.origin?.description,
            "sequence": item.sequence,
            "values": JSON.values(item.values), "since": JSON.date(item.since),
        ])
    }

    private func line(_ item: ParkedItem) -> String {
        let what = item.entity.map { "\($0) \(Text.identity(item.identity))" } ?? "transaction \(item.sequence ?? 0)"
        return """
            \(item.id)  \(item.reason.rawValue)  \(Text.visible(what))  \(Text.visible(item.detail ?? ""))  \
            \(Text.values(item.values))  since \(Text.time(item.since))
            """
    }
}

struct QuarantineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine",
        abstract: "List messages that can't be decoded or verified (the dead-letter queue); retry or discard them.",
        discussion: """
            An agent retries all of them at each start, since a newer version may be able to decode more. --retry and \
            --retry-all do so now; stop the agent first. --discard also removes the message's transaction from the \
            list of missing ones: if the transaction arrives after all, it is dropped as a duplicate.

            If a message is larger than security.limits.maxMessageBytes, or the quarantine has no room for it \
            (security.limits.maxQuarantineBytes), the store keeps only its beginning or a digest, and a retry can't \
            help. Discard the message, or raise the limit or discard others, and start the agent, which reads the \
            message again from the topic.
            """)

    @OptionGroup var store: StoreArgument
    @Option(help: ArgumentHelp("Retry this message now. Stop the agent first.", valueName: "id"))
    var retry: Int64?
    @Flag(help: "Retry all messages now. Stop the agent first.")
    var retryAll = false
    @Option(help: ArgumentHelp("Discard this message, permanently.", valueName: "id"))
    var discard: Int64?
    @OptionGroup var agent: StoppedAgentOptions
    @OptionGroup var output: JSONFlag

    func validate() throws {
        if [retry != nil, retryAll, discard != nil].filter({ $0 }).count > 1 {
            throw ValidationError("Give one of --retry, --retry-all and --discard.")
        }
    }

    func run() throws {
        if let discard { return try discardQuarantined(discard) }
        if retryAll || retry != nil { return try tryAgain() }
        let messages = try store.open(readOnly: true).quarantined()
        for message in messages { try show(message) }
        if messages.isEmpty && !output.json { print("Nothing is quarantined.") }
    }

    private func tryAgain() throws {
        if agent.config == nil, try hasUnproven() {
            throw ValidationError(
                """
                Nothing was retried: it is not proven who sent some of the messages. Without the security settings of \
                the agent, they could be applied, whoever it was. Pass the agent's configuration: --config FILE.
                """)
        }
        let report = try StoreMaintenance.retryQuarantined(
            store: store.store, id: retry, configuration: agent.configuration())
        if output.json {
            return try JSON.print([
                "applied": report.applied, "parked": report.parked, "superseded": report.superseded,
                "chunks": report.chunks, "kept": report.kept, "unkept": report.unkept,
            ])
        }
        print("applied     \(report.applied)")
        print("parked      \(report.parked) (their clock is ahead)")
        print("superseded  \(report.superseded) (their transaction has arrived since)")
        if report.chunks > 0 { print("chunks      \(report.chunks) (other chunks of their transaction are missing)") }
        print("kept        \(report.kept) (still not decoded or verified)")
        if report.unkept > 0 {
            print(
                """
                of these    \(report.unkept) are not in the store in full: raise security.limits and start the agent, \
                which reads them again from the topic, or discard them
                """
            )
        }
    }

    /// Returns true if only the rules of an agent keep one of the messages from being applied: it is in the store in
    /// full, and needs no key.
    private func hasUnproven() throws -> Bool {
        try store.open(readOnly: true).quarantined().contains { message in
            (retry == nil || message.id == retry) && message.needsRules
        }
    }

    private func discardQuarantined(_ id: Int64) throws {
        guard let discarded = try store.open().discardQuarantined(id) else { throw QuarantinedMessage.unknown(id) }
        if output.json {
            return try JSON.print([
                "discarded": id, "origin": discarded.origin?.description, "sequence": discarded.sequence,
                "closedGap": discarded.closedGap,
            ])
        }
        print("Message \(id) was discarded.")
        if discarded.closedGap, let origin = discarded.origin, let sequence = discarded.sequence {
            print("Transaction \(sequence) of \(origin) no longer counts as missing: if it arrives, it is not applied.")
        }
    }

    private func show(_ message: QuarantinedMessage) throws {
        guard output.json else {
            let several = message.messageCount > 1 ? "\(message.messageCount) messages from here on  " : ""
            let kept = message.keptBytes < message.payloadBytes ? " (\(message.keptBytes) kept)" : ""
            let line = """
                \(message.id)  \(message.topic)[\(message.partition)]@\(message.offset)  \
                \(several)\(message.payloadBytes) bytes\(kept)  \(message.reason)  since \(Text.time(message.since))
                """
            // The reason may quote the message.
            return print(Terminal.wrapped(Text.visible(line), indent: 4))
        }
        try JSON.print([
            "id": message.id, "topic": message.topic, "partition": Int(message.partition),
            "offset": message.offset,
            "reason": message.reason, "headers": message.headers, "bytes": message.payloadBytes,
            "since": JSON.date(message.since), "missingKey": message.missingKey, "proven": message.isProven,
            "keptBytes": message.keptBytes, "messages": message.messageCount,
            "sha256": message.digest.map { Hex.text($0) },
        ])
    }
}
