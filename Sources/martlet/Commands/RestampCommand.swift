import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct RestampCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restamp", abstract: "Give rows that were stamped under a clock that was ahead new stamps.",
        discussion: """
            Other nodes keep waiting what is stamped further in the future than sync.maxClockSkew, and all that this node writes \
            afterwards. Set the clock first, and stop the agent. What stands here gets stamps of now, in the order of those that it had, \
            and is published in the place of what waits. Of a store without such stamps nothing is changed.
            """)

    @OptionGroup var store: StoreArgument
    @OptionGroup var output: JSONFlag

    func run() throws {
        let report = try StoreMaintenance.restamp(store: store.store)
        let latest = report.latest?.formatted(.iso8601)
        if output.json {
            return try JSON.print([
                "rows": report.rows, "latest": latest, "replaced": report.replaced,
                "published": report.published,
            ])
        }
        guard let latest else { return print("Nothing in \(store.store) is stamped in the future.") }
        print("\(report.rows) rows were stamped in the future, until \(latest). They have stamps of now.")
        print(
            "\(report.replaced) transactions that other nodes keep waiting are replaced by \(report.published) new ones. Start the agent."
        )
    }
}
