import ArgumentParser
import Foundation
import MartletAgent
import MartletStore

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Demonstrate sync between three devices, with an embedded broker.",
        discussion: """
            Runs real processes on real files, in a temporary folder. Exits with 1 if a step does not give the \
            expected result.
            """)

    @Flag(help: "Keep everything running at the end, until Ctrl-C, so that you can look around.")
    var keep = false

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "martlet-demo-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { if !keep { try? FileManager.default.removeItem(at: folder) } }
        // With --keep only until everything runs: from then on Ctrl-C shuts down gracefully.
        let signals = DemoProcess.endAtSignals { try? FileManager.default.removeItem(at: folder) }
        defer { for source in signals { source.cancel() } }
        let began = ContinuousClock.now
        print("Martlet syncs three devices: a phone, a tablet and an edge box.")
        let broker = try DemoProcess(
            ["broker", "--port", "0", "--topic", "trips=1"], log: folder.appendingPathComponent("broker.log"))
        defer { broker.stop() }
        let line = try broker.firstLine()
        guard let address = line.split(separator: " ").last.map(String.init), line.hasPrefix("listening on") else {
            throw DemoFailure("The broker did not start. It printed: \(line)")
        }
        print(
            Terminal.wrapped("Broker (embedded, for development) on \(address), stores in \(folder.path)", indent: 2))
        let nodes = try ["phone", "tablet", "edge"].map { try DemoNode($0, in: folder) }
        defer { for node in nodes { node.disconnect() } }
        for node in nodes { try node.connect(to: address) }
        do {
            try DemoStory(phone: nodes[0], tablet: nodes[1], edge: nodes[2], broker: address).play()
        } catch {
            ErrorOutput.write("\nThe demo failed: \(error)\n")
            for node in nodes {
                let log = try? String(contentsOf: folder.appendingPathComponent("\(node.name).log"), encoding: .utf8)
                ErrorOutput.write("--- \(node.name)\n\(log ?? "")")
            }
            throw ExitCode(1)
        }
        let seconds = (ContinuousClock.now - began) / .seconds(1)
        print("\nDone in \((seconds * 10).rounded() / 10) s.")
        if keep {
            let (one, other) = (ShellWord.quoted(nodes[0].path), ShellWord.quoted(nodes[1].path))
            let command = ShellWord.quoted(CommandLine.arguments[0])
            print("Everything keeps running until Ctrl-C. Try: sqlite3 \(one) 'UPDATE trip SET rating = 1'")
            print("           and then: \(command) history tail \(other)")
            fflush(nil)
            for source in signals { source.cancel() }
            try await Waiting.untilStopped()
        }
    }
}
