import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct ParkedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "parked",
        abstract: "List what is kept aside until something comes, with the reason; try it again, or throw it away.",
        discussion: """
            Everything parked is tried again by itself when what it waits for comes; --retry does it now, for all of it, and \
            needs the agent to be stopped. --discard throws one item away: this node then differs from the others until \
            somebody writes the same row or column again. It always asks for --yes, and may be used while an agent runs.
            """)

    @OptionGroup var store: StoreArgument
    @Flag(help: "Updates of deleted rows too: they wait for nothing, unless the row is inserted again.")
    var all = false
    @Flag(help: "Try everything again now. Not while an agent runs.")
    var retry = false
    @Option(help: ArgumentHelp("Throw the item of this ID away, for good.", valueName: "id"))
    var discard: String?
    @Flag(help: "With --discard: yes, this node may differ from the others.")
    var yes = false
    @OptionGroup var agent: StoppedAgentOptions
    @OptionGroup var output: JSONFlag

    func validate() throws {
        if retry, discard != nil { throw ValidationError("Give --retry or --discard, not both.") }
        if yes, discard == nil { throw ValidationError("--yes goes with --discard.") }
    }

    func run() throws {
        if retry { return try retryAll() }
        if let discard { return try throwAway(discard) }
        let items = try store.open(readOnly: true).parked(includingDeleted: all)
        for item in items { try show(item) }
        if items.isEmpty && !output.json { print("Nothing is parked.") }
    }

    private func retryAll() throws {
        let report = try StoreMaintenance.retryParked(store: store.store, configuration: agent.configuration())
        if output.json { return try JSON.print(["before": report.before, "after": report.after]) }
        print("\(report.before) were parked, \(report.after) are.")
    }

    private func throwAway(_ id: String) throws {
        guard yes else {
            let items = try store.open(readOnly: true).parked(includingDeleted: true)
            guard let item = items.first(where: { $0.id == id }) else { throw ParkedItem.unknown(id) }
            throw ValidationError(
                """
                Nothing was discarded. Without this, the node differs from the others until somebody writes the same row or \
                column again: \(line(item))
                Give --yes if that is what you want.
                """)
        }
        let item = try store.open().discardParked(id)
        if output.json { try JSON.print(["discarded": item.id]) } else { print("Gone: \(line(item))") }
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
        return
            "\(item.id)  \(item.reason.rawValue)  \(Text.visible(what))  \(Text.visible(item.detail ?? ""))  \(Text.values(item.values))  since \(Text.time(item.since))"
    }
}

struct QuarantineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine",
        abstract: "List messages that can't be understood; try them again, or throw one away.",
        discussion: """
            An agent tries them all again at each start, since a newer version may understand more; --retry and --retry-all \
            do it now, and need the agent to be stopped. --discard also takes the transaction that the message names off \
            the list of those that are missing: should it come after all, it is taken for a duplicate.

            Of a message that is larger than security.limits.maxMessageBytes, or for which there is no room \
            (security.limits.maxQuarantineBytes), the beginning or only a digest is kept, and trying it again does nothing: raise the \
            limit, or discard others, and start the agent, which reads it again from the topic; or discard it.
            """)

    @OptionGroup var store: StoreArgument
    @Option(help: ArgumentHelp("Try this one again now. Not while an agent runs.", valueName: "id"))
    var retry: Int64?
    @Flag(help: "Try all of them again now. Not while an agent runs.")
    var retryAll = false
    @Option(help: ArgumentHelp("Throw this one away, for good.", valueName: "id"))
    var discard: Int64?
    @OptionGroup var agent: StoppedAgentOptions
    @OptionGroup var output: JSONFlag

    func validate() throws {
        if [retry != nil, retryAll, discard != nil].filter({ $0 }).count > 1 {
            throw ValidationError("Give one of --retry, --retry-all and --discard.")
        }
    }

    func run() throws {
        if let discard { return try throwAway(discard) }
        if retryAll || retry != nil { return try tryAgain() }
        let messages = try store.open(readOnly: true).quarantined()
        for message in messages { try show(message) }
        if messages.isEmpty && !output.json { print("Nothing is quarantined.") }
    }

    private func tryAgain() throws {
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
        print("superseded  \(report.superseded) (their transaction had come meanwhile)")
        if report.chunks > 0 { print("chunks      \(report.chunks) (others of their transaction are missing)") }
        print("kept        \(report.kept) (still not understood)")
        if report.unkept > 0 {
            print(
                "of these    \(report.unkept) are not in the store as a whole: raise security.limits and start the agent, which reads them again from the topic, or discard them"
            )
        }
    }

    private func throwAway(_ id: Int64) throws {
        guard let discarded = try store.open().discardQuarantined(id) else { throw QuarantinedMessage.unknown(id) }
        if output.json {
            return try JSON.print([
                "discarded": id, "origin": discarded.origin?.description, "sequence": discarded.sequence,
                "closedGap": discarded.closedGap,
            ])
        }
        print("Message \(id) is gone.")
        if discarded.closedGap, let origin = discarded.origin, let sequence = discarded.sequence {
            print("Transaction \(sequence) of \(origin) counts as missing no longer: it will not be applied any more.")
        }
    }

    private func show(_ message: QuarantinedMessage) throws {
        guard output.json else {
            let several = message.messageCount > 1 ? "\(message.messageCount) messages from here on  " : ""
            let kept = message.keptBytes < message.payloadBytes ? " (\(message.keptBytes) kept)" : ""
            let line =
                "\(message.id)  \(message.topic)[\(message.partition)]@\(message.offset)  \(several)\(message.payloadBytes) bytes\(kept)  \(message.reason)  since \(Text.time(message.since))"
            return print(Terminal.wrapped(line, indent: 4))
        }
        try JSON.print([
            "id": message.id, "topic": message.topic, "partition": Int(message.partition),
            "offset": message.offset,
            "reason": message.reason, "headers": message.headers, "bytes": message.payloadBytes,
            "since": JSON.date(message.since), "missingKey": message.missingKey, "proven": message.isProven,
            "keptBytes": message.keptBytes, "messages": message.messageCount,
            "sha256": message.digest.map { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() },
        ])
    }
}
