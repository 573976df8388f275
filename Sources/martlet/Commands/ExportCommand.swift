import ArgumentParser
import Foundation
import Logging
import MartletAgent
import MartletExport
import MartletStore
import ServiceLifecycle
import UnixSignals

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Publish changes as change events, for systems that know nothing of Martlet.",
        discussion: """
            Each change of a row becomes a record on the topic <prefix>.<table>, in the envelope of Debezium, whether \
            a program on this machine made it or another node. The first run begins with all rows. Runs until it is \
            stopped, with the agent stopped: a running agent exports by itself if export.prefix is set. Of several \
            nodes with one prefix, one exports at a time. docs/export.md describes the records and the guarantees.
            """)

    @OptionGroup var store: StoreArgument
    @Option(help: "The beginning of the names of all topics: export.prefix.")
    var prefix: String?
    @Option(
        name: .customLong("table"), parsing: .singleValue,
        help: "A table to export: export.tables. May be repeated. (default: all)")
    var tables: [String] = []
    @Flag(help: "Give each record its Kafka Connect schema: export.schemas.")
    var schemas = false
    @Flag(help: "Give each record the headers of a CloudEvent: export.cloudEvents.")
    var cloudEvents = false
    @Flag(help: "Export what ingest brought from other systems, too: export.ingested.")
    var ingested = false
    @Flag(help: "Export everything that was committed by now, and end.")
    var untilCaughtUp = false
    @Flag(help: "Export all rows again, and remove rows from the topics that are gone.")
    var again = false
    @OptionGroup var kafka: KafkaOptions
    @OptionGroup var output: JSONFlag

    func run() async throws {
        var configuration = try kafka.configurationWithBroker()
        configuration.storePath = store.store
        if let prefix { configuration.export.prefix = prefix }
        if !tables.isEmpty { configuration.export.tables = tables }
        if schemas { configuration.export.schemas = true }
        if ingested { configuration.export.ingested = true }
        if cloudEvents { configuration.export.cloudEvents = true }
        guard configuration.export.prefix != nil else {
            throw ValidationError("No prefix given: pass --prefix NAME, or set export.prefix in the configuration.")
        }
        guard FileManager.default.fileExists(atPath: store.store) else {
            throw StoreError(
                .notAStore, "There is no file at \(store.store).", hint: "Create a store with `martlet init`.")
        }
        if !untilCaughtUp { StopSignals.endTheProcess() }
        let run = try ExportRun(
            configuration, isAgain: again, log: makeLogger(level: untilCaughtUp ? .warning : .info))
        guard !untilCaughtUp else {
            let count = try run.runUntilCaughtUp()
            if output.json { return try JSON.print(["records": count]) }
            return print("\(count) records exported.")
        }
        let group = ServiceGroup(
            configuration: .init(
                services: [run], gracefulShutdownSignals: [.sigterm, .sigint], logger: makeLogger(level: .warning)))
        try await group.run()
    }
}
