import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct WaitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until what is committed in a store is where it should be.",
        discussion: """
            With --published: until the broker has acknowledged all that was committed when the command began. Nothing is written, and the broker is not \
            asked: the agent notes in the store what was acknowledged.

            With --on NODE or --on-all: until it is applied there, too. Those nodes are asked for word, and answer within about a second of having it. \
            --on-all means every other node that was heard of in the last seven days, and needs at least one.

            An agent must run on the store, or begin to; on the others, too, where they are waited for.

            Exit codes: 0 when it is, 2 when the time is over.
            """)

    @OptionGroup var store: StoreArgument
    @Flag(help: "Until the broker has it.")
    var published = false
    @Option(
        help: ArgumentHelp(
            "Until this node has applied it: its name, or its ID as `martlet status` shows it. May be repeated.",
            valueName: "node"))
    var on: [String] = []
    @Flag(help: "Until all other nodes have applied it.")
    var onAll = false
    @Option(help: ArgumentHelp("How long to wait, for example 500ms, 30s or 5m.", valueName: "time"))
    var timeout = "30s"

    func validate() throws {
        guard [published, !on.isEmpty, onAll].count(where: \.self) == 1 else {
            throw ValidationError("Say what to wait for: --published, --on NODE or --on-all.")
        }
        guard Duration(text: timeout) != nil else {
            throw ValidationError("--timeout \(timeout): must be a time such as 500ms, 30s or 5m")
        }
    }

    func run() throws {
        let deadline = ContinuousClock.now + (Duration(text: timeout) ?? .zero)
        if published { try waitForBroker(deadline) } else { try waitForNodes(deadline) }
    }

    private func waitForBroker(_ deadline: ContinuousClock.Instant) throws {
        let opened = try store.open(readOnly: true)
        var publication = try Publication(opened)
        while try !publication.isAcknowledged(opened) { try pause(deadline) { try say(SyncStatus.read(opened)) } }
    }

    private func waitForNodes(_ deadline: ContinuousClock.Instant) throws {
        let opened = try store.open(readOnly: false)
        var delivery = try Delivery(opened, to: onAll ? .all : .nodes(on))
        while true {
            let missing = try delivery.missing(opened)
            if let missing, missing.isEmpty { return }
            try pause(deadline) {
                guard let missing else { return try say(SyncStatus.read(opened)) }
                write(
                    "Not applied within \(timeout) on \(missing.map(\.description).joined(separator: ", "))\(agentHint)"
                )
            }
        }
    }

    /// - Parameter explain: called when the time is over.
    private func pause(_ deadline: ContinuousClock.Instant, _ explain: () throws -> Void) throws {
        guard ContinuousClock.now < deadline else {
            try explain()
            throw ExitCode(2)
        }
        Thread.sleep(forTimeInterval: Self.pause)
    }

    /// A look takes three small reads.
    private static let pause = 0.02

    private func say(_ status: SyncStatus) throws {
        let count = status.unpublished
        let why = StoreLock.isTaken(store: store.store) ? "; see what its agent logs" : agentHint
        write(
            "Not published within \(timeout): \(count) \(count == 1 ? "transaction waits" : "transactions wait")\(why)")
    }

    private var agentHint: String {
        StoreLock.isTaken(store: store.store)
            ? "" : "; no agent runs on the store: martlet run --store \(store.store)"
    }

    private func write(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }
}
