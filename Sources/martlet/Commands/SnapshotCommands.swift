import ArgumentParser
import Foundation
import Logging
import MartletAgent
import MartletSync

struct SnapshotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot", abstract: "Make, list or load snapshots, from which late joiners bootstrap.",
        discussion: """
            Snapshots are kept on a topic of their own, <topic>.snapshot. Agents make them (snapshot.interval), and \
            load one when the topic no longer has messages that they have not read. These commands do the same by \
            hand, with the agent stopped.
            """,
        subcommands: [Make.self, List.self, Load.self])

    struct Make: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "make", abstract: "Make a snapshot of a store. Stop its agent first.")
        @OptionGroup var store: StoreArgument
        @OptionGroup var kafka: KafkaOptions
        @OptionGroup var output: JSONFlag

        func run() throws {
            _ = try kafka.kafkaConfiguration()
            let made = try StoreMaintenance.makeSnapshot(
                store: store.store, configuration: kafka.configuration(), log: makeLogger(level: .warning))
            if output.json { return try JSON.print(made.object) }
            print(
                Terminal.wrapped(
                    "Snapshot \(made.id): \(made.messageCount) messages, \(made.byteCount) bytes.", indent: 2))
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the snapshots of the topic, newest first.")
        @OptionGroup var kafka: KafkaOptions
        @OptionGroup var output: JSONFlag

        func run() throws {
            _ = try kafka.kafkaConfiguration()
            let all = try StoreMaintenance.snapshots(kafka.configuration(), log: makeLogger(level: .error))
            for snapshot in all {
                if output.json {
                    try JSON.print(snapshot.object)
                } else {
                    let maker = snapshot.makerName.isEmpty ? snapshot.maker.description : snapshot.makerName
                    print(
                        """
                        \(snapshot.id)  \(Text.time(snapshot.made))  \(Text.visible(maker))  \
                        \(snapshot.messageCount) messages, \(snapshot.byteCount) bytes  \
                        \(Text.visible(snapshot.stateText))
                        """)
                }
            }
            if all.isEmpty, !output.json { print("There are no snapshots.") }
        }
    }

    struct Load: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "load",
            abstract: "Load the newest or the given snapshot into a store. Stop its agent first.",
            discussion: "Local changes stay. Loading a snapshot again changes nothing. Exits with 1 if there is none.")
        @OptionGroup var store: StoreArgument
        @Option(help: "The snapshot, by its ID. (default: the newest that can be loaded)")
        var id: String?
        @OptionGroup var kafka: KafkaOptions
        @OptionGroup var output: JSONFlag

        func validate() throws {
            if let id, UUID(uuidString: id) == nil { throw ValidationError("--id \(id): must be a UUID.") }
        }

        func run() throws {
            _ = try kafka.kafkaConfiguration()
            var bar = ProgressBar()
            let loaded = try StoreMaintenance.loadSnapshot(
                id.flatMap(UUID.init(uuidString:)), store: store.store, configuration: kafka.configuration(),
                log: makeLogger(level: .warning)
            ) { progress in
                if !output.json, !progress.isFinished {
                    bar.show(
                        progress.messages, of: progress.messageCount, "messages", detail: "\(progress.rows) rows")
                }
                return true
            }
            bar.finish()
            guard let loaded else {
                if output.json { try JSON.print(["loaded": nil]) } else { print("There is no snapshot to load.") }
                throw ExitCode(1)
            }
            if output.json {
                return try JSON.print([
                    "loaded": loaded.id.uuidString, "rows": loaded.rows, "tombstones": loaded.tombstones,
                    "messages": loaded.messages,
                ])
            }
            print(
                Terminal.wrapped(
                    "Snapshot \(loaded.id) loaded: \(loaded.rows) rows, \(loaded.tombstones) tombstones.", indent: 2)
            )
        }
    }
}

extension SnapshotInfo {
    fileprivate var stateText: String {
        switch state {
        case .complete: "complete"
        case .unfinished: "unfinished"
        case .damaged(let what): "damaged: \(what)"
        case .newerFormat(let what): "can't be read: \(what)"
        }
    }

    fileprivate var object: [String: Any?] {
        [
            "id": id.uuidString, "maker": maker.description, "makerName": makerName, "made": JSON.date(made),
            "arrived": JSON.date(arrived), "state": stateText, "complete": isComplete, "messages": messageCount,
            "bytes": byteCount,
            "positions": positions.sorted { $0.key < $1.key }.map { [Int64($0.key), $0.value] },
        ]
    }
}
