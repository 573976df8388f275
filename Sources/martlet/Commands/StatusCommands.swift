import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show where a node stands: what waits to be sent, to be read, to be decided.",
        discussion: "With --check: exit code 1 when no agent runs on the store, or something is quarantined or missing."
    )

    @OptionGroup var store: StoreArgument
    @Flag(help: "Exit with 1 when something is wrong.")
    var check = false
    @OptionGroup var output: JSONFlag

    func run() throws {
        let opened = try store.open(readOnly: true)
        let status = try SyncStatus.read(opened)
        let isRunning = StoreLock.isTaken(store: store.store)
        if output.json { try JSON.print(status.document(isRunning: isRunning)) } else { show(status, isRunning) }
        let gaps = status.origins.contains { !$0.gaps.isEmpty }
        if check, !isRunning || status.quarantinedCount > 0 || gaps || !status.lostTables.isEmpty { throw ExitCode(1) }
    }

    private func show(_ status: SyncStatus, _ isRunning: Bool) {
        print("node        \(status.name ?? "(never synced)") \(status.node?.description ?? "")")
        print("agent       \(isRunning ? "running" : "not running")")
        print(
            "to publish  \(status.unpublished) transactions (sequence \(status.lastSequence), acknowledged \(status.acknowledged))"
        )
        for partition in status.partitions {
            print(
                "to read     \(partition.topic)[\(partition.partition)]: \(partition.lag.map { "\($0) messages" } ?? "unknown") (offset \(partition.next))"
            )
        }
        for origin in status.origins {
            let gaps =
                origin.gaps.isEmpty
                ? "" : ", missing \(origin.gaps.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ", "))"
            print(
                "heard from  \(origin.name ?? origin.node.description): sequence \(origin.applied)\(gaps)\(origin.heard.map { ", \(Text.time($0))" } ?? "")"
            )
        }
        for cursor in status.cursors { print("cursor      \(cursor.name) at \(cursor.token)") }
        print("parked      \(status.parkedCount)")
        print("quarantined \(status.quarantinedCount)")
        print("conflicts   \(status.conflictCount)")
        if status.divergenceCount > 0 {
            print("divergences \(status.divergenceCount), found by checks: see martlet verify \(store.store)")
        }
        if let offset = status.clockOffset {
            let text =
                offset.lowerBound > 1000
                ? "at least \(offset.lowerBound) ms ahead of the broker's"
                : offset.upperBound < -1000
                    ? "at least \(-offset.upperBound) ms behind the broker's" : "as the broker's"
            print("clock       \(text)")
        }
        if let date = status.collectedThrough { print("forgotten   what was deleted before \(Text.time(date))") }
        for (name, reason) in status.lostTables.sorted(by: { $0.key < $1.key }) {
            print("lost table  \(name): \(reason)")
        }
    }
}

struct ConflictsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts", abstract: "List what merging overruled, or take a value back.")

    @OptionGroup var store: StoreArgument
    @Option(help: "Set the column to the value that was overruled, as a new change.")
    var reapply: Int64?
    @Option(help: "The author of that change.")
    var author: String?
    @OptionGroup var output: JSONFlag

    func run() throws {
        if let reapply {
            try store.open().reapplyConflict(reapply, author: author)
            return print("Conflict \(reapply): the overruled value is set again.")
        }
        let conflicts = try store.open(readOnly: true).conflicts()
        for conflict in conflicts {
            if output.json {
                try JSON.print([
                    "id": conflict.id, "kind": conflict.kind.rawValue, "entity": conflict.entity,
                    "identity": JSON.identity(conflict.identity), "column": conflict.column,
                    "value": JSON.value(conflict.value),
                    "loser": side(conflict.loser, conflict.loserName),
                    "winner": side(conflict.winner, conflict.winnerName),
                    "since": JSON.date(conflict.since), "reapplied": JSON.date(conflict.reapplied),
                ])
            } else {
                let column = conflict.column.map { ".\($0)" } ?? ""
                print(
                    "\(conflict.id)  \(conflict.kind.rawValue)  \(conflict.entity)\(column) \(Text.identity(conflict.identity))  "
                        + "overruled \(Text.value(conflict.value)) of \(conflict.loserName ?? "?") by \(conflict.winnerName ?? "?")"
                        + (conflict.reapplied == nil ? "" : "  (taken back)"))
            }
        }
        if conflicts.isEmpty && !output.json { print("There were no conflicts.") }
    }

    private func side(_ stamp: Stamp, _ name: String?) -> [String: Any?] {
        [
            "node": stamp.node.description, "name": name,
            "time": JSON.date(Date(timeIntervalSince1970: Double(stamp.time.milliseconds) / 1000)),
        ]
    }
}
