import ArgumentParser
import Foundation
import Logging
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTelemetry

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check a store, and the broker if you name one, and say what to do about each finding.",
        discussion: "Exits with 1 if any finding is a problem.")

    @OptionGroup var store: StoreArgument
    @OptionGroup var kafka: KafkaOptions
    @OptionGroup var output: JSONFlag

    func run() throws {
        var findings = try StoreDoctor.examine(path: store.store)
        if kafka.bootstrapServers != nil || kafka.config != nil {
            let configuration = try kafka.configurationWithBroker()
            findings += ConfigurationDoctor.examine(configuration, store: store.store)
            findings += SecurityDoctor.examine(configuration.security)
            findings += try IngestDoctor.examine(configuration.ingest, store: store.store)
            findings += ConnectionDoctor.examine(configuration)
            findings += BrokerDoctor.examine(
                configuration, store: store.store, log: makeLogger(level: .critical))
            findings += TelemetryDoctor.examine(configuration.telemetry)
        }
        for finding in findings {
            if output.json {
                try JSON.print([
                    "check": finding.check, "level": finding.level.rawValue, "message": finding.message,
                    "remedy": finding.remedy,
                ])
            } else {
                let level = finding.level.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
                let text =
                    "\(finding.check): \(finding.message)"
                    + (finding.remedy.map { (finding.message.last == "." ? " " : ". ") + $0 } ?? "")
                print(
                    Terminal.coloured(level, finding.level.colour)
                        + Terminal.wrapped(Text.visible(text), after: level.count, indent: level.count))
            }
        }
        if findings.contains(where: { $0.level == .problem }) { throw ExitCode(1) }
    }
}

extension Finding.Level {
    fileprivate var colour: Terminal.Colour {
        switch self {
        case .ok: .green
        case .warning: .yellow
        case .problem: .red
        }
    }
}
