import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct RestampCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restamp", abstract: "Give new timestamps to rows that were stamped while the clock was ahead.",
        discussion: """
            Other nodes park every change whose timestamp is further ahead than sync.maxClockSkew, and everything that \
            this node writes after it. Set the clock first, and stop the agent. The rows of this store then get \
            current timestamps, in their former order, and are published in place of the parked changes. A store \
            without such timestamps is left unchanged.
            """)

    @OptionGroup var store: StoreArgument
    @Option(
        help: "The agent's configuration file (YAML), if it has one.", completion: .file(extensions: ["yaml", "yml"]))
    var config: String?
    @OptionGroup var output: JSONFlag

    func run() throws {
        let report = try StoreMaintenance.restamp(
            store: store.store, configuration: AgentConfiguration(file: config))
        let latest = report.latest?.formatted(.iso8601)
        if output.json {
            return try JSON.print([
                "rows": report.rows, "latest": latest, "replaced": report.replaced,
                "published": report.published,
            ])
        }
        guard let latest else { return print("Nothing in \(store.store) is stamped in the future.") }
        print("\(report.rows) rows were stamped in the future, up to \(latest). They have current timestamps now.")
        print(
            """
            \(report.replaced) transactions that other nodes park are replaced by \(report.published) new ones. Start \
            the agent.
            """
        )
    }
}
