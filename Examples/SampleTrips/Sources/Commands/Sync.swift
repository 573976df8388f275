import ArgumentParser
import Foundation
import MartletAgent
import SwiftData
import UnixSignals

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keep the file in step with other devices, until stopped (Ctrl-C).")

    @OptionGroup var store: StoreOption
    @Option(help: "The broker, as host:port.")
    var broker = "localhost:9092"
    @Option(help: "The topic that all devices share. It must exist.")
    var topic = "trips"
    @Option(help: "This device's name. (default: the host's)")
    var name: String?

    func run() async throws {
        let model = try store.open(sync: KafkaSync.kafka(broker, topic: topic, name: name))
        print("Syncing \(store.store) over \(topic) at \(broker).")
        fflush(nil)
        for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint) { break }
        await model.container.stopSync()
    }
}
