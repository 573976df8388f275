import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the state of a node: what it has yet to publish, read and apply.",
        discussion: """
            With --check, exits with 1 if no agent runs on the store, a message is quarantined, a transaction is \
            missing, or a table is no longer tracked. With --alive, exits with 1 only if no agent runs: use it for a \
            health check that restarts the agent, because a restart fixes none of the other problems.
            """)

    @OptionGroup var store: StoreArgument
    @Flag(help: "Exit with 1 if something is wrong.")
    var check = false
    @Flag(help: "Exit with 1 if no agent runs on the store.")
    var alive = false
    @Flag(help: "Refresh every second, with rates, until stopped (Ctrl-C).")
    var watch = false
    @OptionGroup var output: JSONFlag

    func validate() throws {
        if watch, check || alive {
            throw ValidationError(
                "\(check ? "--check" : "--alive") runs once, and --watch runs until stopped. Give only one of them.")
        }
    }

    func run() throws {
        let opened = try store.open(readOnly: true)
        guard !watch else { return try show(opened) }
        let status = try SyncStatus.read(opened)
        let isRunning = StoreLock.isTaken(store: store.store)
        let unnamed = try opened.rowsWithoutIdentity()
        // It reads the whole history, and checks run often.
        let history = try check || alive ? nil : opened.historyReport()
        let file = try opened.fileSpace()
        if output.json {
            try JSON.print(status.document(isRunning: isRunning, unnamed: unnamed, history: history, file: file))
        } else {
            let sizes = SizeText.lines(history, file, time: Text.time)
            print((lines(status, isRunning) + sizes + Self.lines(unnamed)).joined(separator: "\n"))
        }
        if alive, !isRunning { throw ExitCode(1) }
        let gaps = status.origins.contains { !$0.gaps.isEmpty }
        if check, !isRunning || status.quarantinedCount > 0 || gaps || !status.lostTables.isEmpty { throw ExitCode(1) }
    }

    /// Shows the status repeatedly.
    private func show(_ opened: Store) throws {
        if !output.json { Terminal.clear() }
        var last: (status: SyncStatus, at: ContinuousClock.Instant)?
        while true {
            try opened.checkIsInPlace()
            let status = try SyncStatus.read(opened)
            let isRunning = StoreLock.isTaken(store: store.store)
            let now = ContinuousClock.now
            if output.json {
                try JSON.print(status.document(isRunning: isRunning))
                fflush(nil)
            } else {
                let rates = last.map { [Self.rates($0.status, status, now - $0.at)] } ?? []
                Terminal.redraw(["\(Text.time(Date()))  \(store.store)", ""] + lines(status, isRunning) + rates)
            }
            last = (status, now)
            Thread.sleep(forTimeInterval: 1)
        }
    }

    private static func rates(_ old: SyncStatus, _ new: SyncStatus, _ time: Duration) -> String {
        func rate(_ value: (SyncStatus) -> Int64) -> String {
            String(format: "%.1f", max(0, Double(value(new) - value(old))) / (time / .seconds(1)))
        }
        let applied = rate { $0.origins.reduce(0) { $0 + $1.applied } }
        return "per second  \(rate(\.lastSequence)) enqueued, \(rate(\.acknowledged)) published, \(applied) applied"
    }

    private static func lines(_ unnamed: [String: Int]) -> [String] {
        unnamed.sorted { $0.key < $1.key }.map { name, count in
            "not synced  "
                + Terminal.coloured(
                    Text.visible("\(name): \(count) \(count == 1 ? "row" : "rows") with NULL in the key"), .yellow)
        }
    }

    private func lines(_ status: SyncStatus, _ isRunning: Bool) -> [String] {
        func count(_ count: Int, _ colour: Terminal.Colour) -> String {
            Terminal.coloured("\(count)", count > 0 ? colour : nil)
        }
        var lines = [
            "node        \(Text.visible(status.name ?? "(never synced)")) \(status.node?.description ?? "")",
            "agent       " + (isRunning ? "running" : Terminal.coloured("not running", .red)),
            """
            to publish  \(status.unpublished) transactions \
            (sequence \(status.lastSequence), acknowledged \(status.acknowledged))
            """,
        ]
        for unkept in status.unkept {
            let range = unkept.sequences
            let name = range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
            lines.append(
                "not kept    "
                    + Terminal.coloured("sequence \(name), \(unkept.bytes) bytes: the topic retains too little", .red)
                    + "; see martlet doctor")
        }
        for partition in status.partitions {
            let lag = partition.lag.map { "\($0) messages" } ?? "unknown"
            lines.append("to read     \(partition.topic)[\(partition.partition)]: \(lag) (offset \(partition.next))")
        }
        for origin in status.origins {
            let missing = origin.gaps.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ", ")
            let gaps = missing.isEmpty ? "" : ", " + Terminal.coloured("missing \(missing)", .red)
            let heard = origin.heard.map { ", \(Text.time($0))" } ?? ""
            lines.append(
                """
                heard from  \(Text.visible(origin.name ?? origin.node.description)): \
                sequence \(origin.applied)\(gaps)\(heard)
                """)
        }
        lines += status.cursors.map { "cursor      \(Text.visible($0.name)) at \($0.token)" }
        if !status.filters.isEmpty {
            lines.append("filters     \(Text.visible(status.filters.summary)); \(status.filteredCount) filtered out")
        }
        lines.append("parked      " + count(status.parkedCount, .yellow))
        lines.append("quarantined " + count(status.quarantinedCount, .red))
        lines.append("conflicts   \(status.conflictCount)")
        if status.divergenceCount > 0 {
            let command = "martlet verify \(ShellWord.quoted(store.store))"
            lines.append("divergences \(status.divergenceCount), found by checks: run \(command)")
        }
        if let offset = status.clockOffset {
            let text =
                offset.lowerBound > 1000
                ? "at least \(offset.lowerBound) ms ahead of the broker's"
                : offset.upperBound < -1000
                    ? "at least \(-offset.upperBound) ms behind the broker's" : "agrees with the broker's"
            lines.append("clock       \(text)")
        }
        if let date = status.collectedThrough {
            lines.append("collected   tombstones of rows deleted before \(Text.time(date))")
        }
        for (name, reason) in status.lostTables.sorted(by: { $0.key < $1.key }) {
            lines.append("lost table  " + Terminal.coloured(Text.visible("\(name): \(reason)"), .red))
        }
        return lines
    }
}

struct ConflictsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts", abstract: "List what merging overruled, or reapply an overruled value.")

    @OptionGroup var store: StoreArgument
    @Option(help: "Set the column to the value that this conflict overruled, as a new change.")
    var reapply: Int64?
    @Option(help: "The author of that change.")
    var author: String?
    @OptionGroup var output: JSONFlag

    func run() throws {
        if let reapply {
            try store.open().reapplyConflict(reapply, author: author)
            return print("Conflict \(reapply): the overruled value was reapplied.")
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
                let row = "\(Text.visible(conflict.entity + column)) \(Text.identity(conflict.identity))"
                let line =
                    "\(conflict.id)  \(conflict.kind.rawValue)  \(row)  " + Self.outcome(conflict)
                    + (conflict.reapplied == nil ? "" : "  (reapplied)")
                print(Terminal.wrapped(line, indent: 4))
            }
        }
        if conflicts.isEmpty && !output.json { print("There were no conflicts.") }
    }

    private static func outcome(_ conflict: Conflict) -> String {
        let loser = Text.visible(conflict.loserName ?? "?")
        let winner = Text.visible(conflict.winnerName ?? "?")
        // Here a row lost, not a value.
        if conflict.kind == .unique { return "the row of \(loser) lost to the row of \(winner), and is parked" }
        return "overruled \(Text.value(conflict.value)) of \(loser) by \(winner)"
    }

    private func side(_ stamp: Stamp, _ name: String?) -> [String: Any?] {
        [
            "node": stamp.node.description, "name": name,
            "time": JSON.date(Date(timeIntervalSince1970: Double(stamp.time.milliseconds) / 1000)),
        ]
    }
}
