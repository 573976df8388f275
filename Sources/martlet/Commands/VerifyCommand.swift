import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Check that stores are sound, and that several of them agree.",
        discussion: """
            In each store, checks that the file has no damage, that references have their targets, that every row is \
            in the history, and that row IDs and clocks are consistent. Compares the rows of several stores: a \
            difference means that one store has not received a change yet (behind), or that it has received all \
            changes of the other and still differs (divergent). A table is "the same" if all stores have the same \
            state of each row. Changes that all of them have received but can't apply yet, for instance because of a \
            rival row or a missing target, are counted separately. Stores whose tables are all the same have the \
            same digest. Writes nothing without --repair or --forget. Agents may run.

            With --repair, the stores exchange their divergent rows, with their clocks. Stop the agents first. Nothing \
            is repaired if a file is damaged, or if rows of a store share an ID.

            Exit codes: 0 the stores are sound, and no row is (still) divergent; 1 a problem was found, or a row is \
            divergent; 64 incorrect usage.
            """)

    @Argument(help: "The stores: SQLite files.", completion: .file())
    var stores: [String]
    @Option(help: "The most differences to list. All are counted.")
    var limit = 20
    @Flag(
        name: [.customLong("repair"), .customLong("mend")],
        help: "Repair divergent rows by exchanging them between the stores. (--mend is the former name.)")
    var repair = false
    @Flag(help: "Clear the divergences that checks between nodes have recorded.")
    var forget = false
    @OptionGroup var output: JSONFlag

    func validate() throws {
        if stores.isEmpty { throw ValidationError("No store given: pass one or more SQLite files.") }
        if repair, stores.count < 2 { throw ValidationError("--repair needs at least two stores.") }
        if limit < 0 { throw ValidationError("--limit \(limit): must not be negative.") }
    }

    func run() throws {
        var isSound = true
        var damaged: String?
        for path in stores {
            let found = try StoreVerifier.examine(path)
            if output.json { try printJSON(path, found) } else { show(path, found) }
            if !found.soundness.isSound { isSound = false }
            // What else is not sound, such as a row that vanished, is what the other store can supply.
            if found.soundness.integrity != "ok" || !found.soundness.sameNames.isEmpty { damaged = damaged ?? path }
            if forget {
                var configuration = StoreConfiguration()
                configuration.isReadOnly = false
                try Store(path: path, configuration: configuration).clearDivergences()
            }
        }
        if repair, let damaged {
            throw StoreError(
                .corrupt, "Nothing was repaired: \(damaged) is damaged, or its rows share an ID.",
                hint: "Restore that file from a backup, or start with a new one: it gets its rows from other nodes.")
        }
        guard stores.count > 1 else {
            if !isSound { throw ExitCode(1) }
            return
        }
        var comparison = try StoreComparison.compare(stores, limit: limit)
        if output.json { try JSON.print(object(comparison)) } else { show(comparison) }
        if repair {
            let reports = try StoreVerifier.repair(stores)
            for report in reports {
                if output.json {
                    try JSON.print(["mended": report.path, "found": report.foundCount, "rows": report.repairedCount])
                } else {
                    print(
                        "repaired    \(report.path): \(report.repairedCount) of \(report.foundCount) rows and columns")
                }
            }
            comparison = try StoreComparison.compare(stores, limit: limit)
            let left = comparison.tables.reduce(0) { $0 + $1.divergentCount }
            if !output.json {
                print(left == 0 ? "Nothing is divergent any more." : "\(left) rows and columns are still divergent.")
            }
            isSound = try stores.allSatisfy { try StoreVerifier.examine($0).soundness.isSound }
            if !isSound, !output.json { print("There are still problems: run martlet verify again.") }
        }
        if !isSound || !comparison.isSound { throw ExitCode(1) }
    }

    // MARK: One store

    private func show(_ path: String, _ found: StoreVerifier.Examination) {
        print(path)
        for finding in found.findings {
            let level = finding.level.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
            let text = "\(finding.check): \(finding.message)\(finding.remedy.map { " \($0)" } ?? "")"
            print("  \(level)\(Text.visible(text))")
        }
        for divergence in found.soundness.divergences.suffix(limit) {
            let column = divergence.column.map { ".\($0)" } ?? ""
            let row = "\(Text.visible(divergence.entity + column)) \(Text.identity(divergence.identity))"
            let node = Text.visible(divergence.nodeName ?? divergence.node.description)
            print(
                """
                  found   \(Text.time(divergence.since))  \(row): \
                \(divergence.kind.rawValue), \(divergence.outcome.rawValue), with \(node)
                """)
        }
    }

    private func printJSON(_ path: String, _ found: StoreVerifier.Examination) throws {
        try JSON.print([
            "store": path, "sound": found.soundness.isSound,
            "findings": found.findings.map { finding -> [String: Any?] in
                [
                    "check": finding.check, "level": finding.level.rawValue, "message": finding.message,
                    "remedy": finding.remedy,
                ]
            },
            "divergences": found.soundness.divergences.suffix(limit).map { one -> [String: Any?] in
                [
                    "id": one.id, "kind": one.kind.rawValue, "outcome": one.outcome.rawValue, "entity": one.entity,
                    "identity": JSON.identity(one.identity), "column": one.column, "node": one.node.description,
                    "nodeName": one.nodeName, "since": JSON.date(one.since), "here": one.here.map(stamp),
                    "there": stamp(one.there),
                ]
            },
        ])
    }

    private func stamp(_ stamp: Stamp) -> [String: Any?] {
        [
            "node": stamp.node.description,
            "time": JSON.date(Date(timeIntervalSince1970: Double(stamp.time.milliseconds) / 1000)),
            "clock": String(stamp.time.rawValue),
        ]
    }

    // MARK: Several stores

    private func show(_ comparison: StoreComparison) {
        for member in comparison.members {
            for missing in member.missing {
                print(
                    """
                    behind      \(member.path) (\(Text.visible(member.name))) lacks \(missing.count) transactions from \
                    \(Text.visible(missing.originName))
                    """
                )
            }
            if member.uncheckedRowCount > 0 {
                print(
                    """
                    unchecked   \(member.path) (\(Text.visible(member.name))): \(member.uncheckedRowCount) rows have \
                    changes that its agent has not stamped yet
                    """
                )
            }
        }
        for table in comparison.tables {
            let rows = table.rowCounts.map { $0.map(String.init) ?? "-" }.joined(separator: " / ")
            var text = "\(table.name): \(rows) rows"
            if let skipped = table.skipped {
                text += ", not compared: \(skipped)"
            } else if table.divergentCount + table.behindCount + table.unpublishedCount == 0 {
                text += ", the same"
            }
            if table.divergentCount > 0 { text += ", \(table.divergentCount) divergent" }
            if table.behindCount > 0 { text += ", \(table.behindCount) behind" }
            if table.unpublishedCount > 0 { text += ", \(table.unpublishedCount) never published" }
            for waiting in table.waiting { text += "; \(self.text(waiting))" }
            print("table       \(Text.visible(text))")
        }
        for difference in comparison.differences {
            let column = difference.column.map { ".\($0)" } ?? ""
            let kind = difference.kind.rawValue.padding(toLength: 12, withPad: " ", startingAt: 0)
            print("\(kind)\(Text.visible(difference.table + column)) \(Text.identity(difference.identity))")
            for (member, state) in zip(comparison.members, difference.states) {
                print("            \(Text.visible(member.name)): \(text(state, difference.column))")
            }
        }
    }

    /// For example `2 rows and 1 value wait (unique)`, with slashes between the counts if the stores differ.
    private func text(_ waiting: StoreComparison.Waiting) -> String {
        func text(_ counts: [Int], _ one: String, _ several: String) -> String? {
            guard counts.contains(where: { $0 > 0 }) else { return nil }
            guard Set(counts).count == 1 else {
                return "\(counts.map(String.init).joined(separator: " / ")) \(several)"
            }
            return "\(counts[0]) \(counts[0] == 1 ? one : several)"
        }
        let parts = [text(waiting.rowCounts, "row", "rows"), text(waiting.valueCounts, "value", "values")]
            .compactMap(\.self)
        let isOne = parts.count == 1 && parts[0].hasPrefix("1 ") && !parts[0].contains("/")
        return "\(parts.joined(separator: " and ")) \(isOne ? "waits" : "wait") (\(waiting.reason.rawValue))"
    }

    private func text(_ state: StoreComparison.State?, _ column: String?) -> String {
        guard let state else { return "nothing" }
        if let reason = state.waits { return "\(text(shown(state), column)), and waits (\(reason.rawValue))" }
        let what = column != nil ? Text.value(state.value) : state.isThere ? "there" : "deleted"
        guard state.stamp != .zero else { return "\(what), from before it was tracked" }
        let time = Date(timeIntervalSince1970: Double(state.stamp.time.milliseconds) / 1000)
        return "\(what), set \(Text.time(time)) by \(state.stamp.node.description.lowercased().prefix(8))"
    }

    private func shown(_ state: StoreComparison.State) -> StoreComparison.State {
        var state = state
        state.waits = nil
        return state
    }

    private func object(_ comparison: StoreComparison) -> [String: Any?] {
        [
            "sound": comparison.isSound,
            "stores": comparison.members.map { member -> [String: Any?] in
                [
                    "path": member.path, "node": member.node.description, "name": member.name,
                    "missing": member.missing.map { missing -> [String: Any?] in
                        [
                            "origin": missing.origin.description, "name": missing.originName,
                            "transactions": missing.count,
                        ]
                    },
                    "unchecked": member.uncheckedRowCount,
                ]
            },
            "tables": comparison.tables.map { table -> [String: Any?] in
                [
                    "table": table.name, "rows": table.rowCounts.map { $0 as Any? }, "divergent": table.divergentCount,
                    "behind": table.behindCount, "unpublished": table.unpublishedCount, "skipped": table.skipped,
                    "waiting": table.waiting.map { waiting -> [String: Any?] in
                        [
                            "reason": waiting.reason.rawValue, "rows": waiting.rowCounts,
                            "values": waiting.valueCounts,
                        ]
                    },
                ]
            },
            "differences": comparison.differences.map { difference -> [String: Any?] in
                [
                    "kind": difference.kind.rawValue, "table": difference.table, "column": difference.column,
                    "identity": JSON.identity(difference.identity),
                    "states": difference.states.map { state -> [String: Any?]? in
                        state.map { state in
                            [
                                "stamp": stamp(state.stamp), "there": state.isThere,
                                "waits": state.waits?.rawValue,
                                "value": state.value.flatMap { JSON.value($0) },
                            ]
                        }
                    },
                ]
            },
        ]
    }
}
