import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct WaitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until a store's commits have reached the broker or other nodes.",
        discussion: """
            With --published, waits until the broker has acknowledged everything that was committed when the command \
            began. The command writes nothing and does not contact the broker: the agent records acknowledgements in \
            the store.

            With --on NODE or --on-all, waits until those nodes have applied the commits, too. The agent asks them to \
            report, and they answer within about a second after applying. --on-all means every other node that was \
            heard from in the last seven days, and needs at least one.

            An agent must run on the store, or be started while the command waits. With --on and --on-all, agents must \
            run on the other nodes, too.

            Exit codes: 0 when the commits have arrived, 2 when the timeout expires.
            """)

    @OptionGroup var store: StoreArgument
    @Flag(help: "Wait until the broker has acknowledged the commits.")
    var published = false
    @Option(
        help: ArgumentHelp(
            "Wait until the node with this name or ID (`martlet status`) has applied the commits. May be repeated.",
            valueName: "node"))
    var on: [String] = []
    @Flag(help: "Wait until all other nodes have applied the commits.")
    var onAll = false
    @Option(
        help: ArgumentHelp(
            "Wait only for commits up to this token (`martlet history list --json`). (default: all until now)",
            valueName: "token"))
    var through: String?
    @Option(help: ArgumentHelp("How long to wait, for example 500ms, 30s or 5m.", valueName: "time"))
    var timeout = "30s"

    func validate() throws {
        guard [published, !on.isEmpty, onAll].count(where: \.self) == 1 else {
            throw ValidationError("Specify what to wait for: --published, --on NODE or --on-all.")
        }
        guard Duration(text: timeout) != nil else {
            throw ValidationError("--timeout \(timeout): must be a time such as 500ms, 30s or 5m")
        }
        _ = try token
    }

    private var token: HistoryToken? { get throws { try through.map(HistoryCommand.token) } }

    func run() throws {
        let deadline = ContinuousClock.now + (Duration(text: timeout) ?? .zero)
        let receivers: Delivery.Receivers = published ? .broker : onAll ? .all : .nodes(on)
        var wait = DeliveryWait(to: receivers, through: try token) { [store, published] in
            try store.open(readOnly: published, busyTimeout: Self.busyTimeout)
        }
        let outcome = try wait.run(until: deadline)
        guard let explanation = explanation(outcome) else { return }
        ErrorOutput.write("\(explanation)\n")
        throw ExitCode(2)
    }

    /// How long one attempt waits for the store's lock. Short, so that the command ends at its timeout.
    private static let busyTimeout = Duration.milliseconds(100)

    /// Says what was missing when the time was over. Nil if nothing was.
    private func explanation(_ outcome: DeliveryWait.Outcome) -> String? {
        let isTaken = StoreLock.isTaken(store: store.store)
        let noAgent = "; no agent runs on the store, start one: martlet run --store \(ShellWord.quoted(store.store))"
        switch outcome {
        case .delivered: return nil
        case .busy(let error): return "The store was locked for \(timeout): \(error)"
        case .missing(let missing):
            let nodes = missing.map(\.description).joined(separator: ", ")
            return "Not applied within \(timeout) on \(nodes)\(isTaken ? "" : noAgent)"
        case .unpublished(let count):
            return "Not published within \(timeout): \(count) \(count == 1 ? "transaction waits" : "transactions wait")"
                + (isTaken ? "; check its agent's log" : noAgent)
        }
    }
}
