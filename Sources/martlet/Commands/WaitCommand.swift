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
    @Option(
        help: ArgumentHelp(
            "Up to this history token alone, as `martlet history list --json` shows it; default: all that is committed now.",
            valueName: "token"))
    var through: String?
    @Option(help: ArgumentHelp("How long to wait, for example 500ms, 30s or 5m.", valueName: "time"))
    var timeout = "30s"

    func validate() throws {
        guard [published, !on.isEmpty, onAll].count(where: \.self) == 1 else {
            throw ValidationError("Say what to wait for: --published, --on NODE or --on-all.")
        }
        guard Duration(text: timeout) != nil else {
            throw ValidationError("--timeout \(timeout): must be a time such as 500ms, 30s or 5m")
        }
        _ = try token
    }

    private var token: HistoryToken? { get throws { try through.map(HistoryCommand.token) } }

    func run() throws {
        let deadline = ContinuousClock.now + (Duration(text: timeout) ?? .zero)
        let opened = try store.open(readOnly: published)
        var delivery = try Delivery(opened, to: published ? .broker : onAll ? .all : .nodes(on), through: token)
        while true {
            let missing = try delivery.missing(opened)
            if let missing, missing.isEmpty { return }
            guard ContinuousClock.now < deadline else {
                try explain(missing, opened)
                throw ExitCode(2)
            }
            Thread.sleep(forTimeInterval: Self.pause)
        }
    }

    /// A look takes three small reads.
    private static let pause = 0.02

    /// Says what was not there in time.
    private func explain(_ missing: [Delivery.Missing]?, _ opened: Store) throws {
        let isTaken = StoreLock.isTaken(store: store.store)
        let noAgent = "; no agent runs on the store: martlet run --store \(store.store)"
        let line: String
        if let missing {
            let nodes = missing.map(\.description).joined(separator: ", ")
            line = "Not applied within \(timeout) on \(nodes)\(isTaken ? "" : noAgent)"
        } else {
            let count = try SyncStatus.read(opened).unpublished
            line =
                "Not published within \(timeout): \(count) \(count == 1 ? "transaction waits" : "transactions wait")"
                + (isTaken ? "; see what its agent logs" : noAgent)
        }
        FileHandle.standardError.write(Data("\(line)\n".utf8))
    }
}
