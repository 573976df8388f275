import ArgumentParser
import Foundation
import MartletAgent
import MartletStore
import MartletSync

struct IngestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ingest", abstract: "Show how far topics of other systems were ingested; skip a record.",
        discussion: """
            An agent ingests the topics of ingest.topics: it makes rows of tracked tables from the records of Debezium \
            connectors. A record that can't be merged holds up its partition, and is retried; this lists it with the \
            reason. --skip leaves it out for good, and works while an agent runs, which goes on within a minute. \
            With --json, prints one object per partition: topic, partition, next, problem, since. docs/ingest.md says \
            what becomes of a record.
            """)

    @OptionGroup var store: StoreArgument
    @Option(
        help: ArgumentHelp(
            "Leave out the record that holds up its partition, for good.", valueName: "topic/partition/offset"))
    var skip: String?
    @OptionGroup var output: JSONFlag

    func run() throws {
        if let skip { return try leaveOut(skip) }
        let places = try store.open(readOnly: true).ingestPlaces()
        if places.isEmpty, !output.json { print("Nothing was ingested.") }
        for place in places { try show(place) }
    }

    private func leaveOut(_ text: String) throws {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let partition = Int32(parts[1]), let offset = Int64(parts[2]) else {
            throw ValidationError(
                "--skip \(text): must be a topic, a partition and an offset, such as pg.product/0/17.")
        }
        try store.open().skipIngested(topic: String(parts[0]), partition: partition, offset: offset)
        if output.json { try JSON.print(["skipped": text]) } else { print("Skipped: \(Text.visible(text))") }
    }

    private func show(_ place: IngestPlace) throws {
        if output.json {
            return try JSON.print([
                "topic": place.topic, "partition": place.partition, "next": place.next, "problem": place.problem,
                "since": place.since.map(JSON.date),
            ])
        }
        var line = "\(Text.visible(place.topic))/\(place.partition)/\(place.next)"
        if let problem = place.problem {
            line += "  held up since \(place.since.map(Text.time) ?? "?"): \(Text.visible(problem))"
        }
        print(Terminal.wrapped(line, indent: 4))
    }
}
