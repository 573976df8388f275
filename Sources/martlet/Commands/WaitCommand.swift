import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct WaitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until what is committed in a store is where it should be.",
        discussion: """
            With --published: until the broker has acknowledged all that was committed when the command began. An agent must run on the store, or \\
            begin to. Nothing is written, and the broker is not asked: the agent notes in the store what was acknowledged.

            Exit codes: 0 when it is, 2 when the time is over.
            """)

    @OptionGroup var store: StoreArgument
    @Flag(help: "Until the broker has it.")
    var published = false
    @Option(help: ArgumentHelp("How long to wait, for example 500ms, 30s or 5m.", valueName: "time"))
    var timeout = "30s"

    func validate() throws {
        guard published else { throw ValidationError("Say what to wait for: --published.") }
        guard Duration(text: timeout) != nil else {
            throw ValidationError("--timeout \(timeout): must be a time such as 500ms, 30s or 5m")
        }
    }

    func run() throws {
        let opened = try store.open(readOnly: true)
        var publication = try Publication(opened)
        let deadline = ContinuousClock.now + (Duration(text: timeout) ?? .zero)
        while try !publication.isAcknowledged(opened) {
            guard ContinuousClock.now < deadline else {
                try say(SyncStatus.read(opened))
                throw ExitCode(2)
            }
            Thread.sleep(forTimeInterval: Self.pause)
        }
    }

    /// A look takes three small reads.
    private static let pause = 0.02

    private func say(_ status: SyncStatus) throws {
        let count = status.unpublished
        let why =
            StoreLock.isTaken(store: store.store)
            ? "see what its agent logs" : "no agent runs on the store: martlet run --store \(store.store)"
        FileHandle.standardError.write(
            Data(
                "Not published within \(timeout): \(count) \(count == 1 ? "transaction waits" : "transactions wait"); \(why)\n"
                    .utf8))
    }
}
