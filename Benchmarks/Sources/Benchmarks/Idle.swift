import Foundation
import MartletKafka
import MartletStore

/// The cost of an idle agent.
struct Idle {
    let run: Run
    let martlet: String?
    /// The requested broker. Nil uses the embedded one.
    let bootstrap: String?

    func measure() throws {
        guard let martlet else { return run.report.note("SKIPPED: no binary was given (--martlet PATH)") }
        let topic = try bootstrap.map(Broker.makeTopic) ?? "martlet"
        let broker = bootstrap == nil ? try EmbeddedBroker(topics: [topic: 1]) : nil
        let servers = broker?.bootstrapServers ?? [bootstrap ?? ""]
        let path = run.newFile()
        defer { run.remove(path) }
        try Store.makeBenchmark(path, .uuid, run.settings).close()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: martlet)
        process.arguments = [
            "run", "--store", path, "--bootstrap-servers", servers.joined(separator: ","), "--topic", topic,
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        // Long enough for the cost of starting to be over; the connections with which the agent catches up are closed
        // within two fetch waits.
        sleep(run.isQuick ? 5 : 150)
        // Clients request metadata from the brokers every five minutes: equally often in each window of ten.
        let duration: UInt32 = run.isQuick ? 10 : 600
        let before = try (cpu: ProcessUse.cpuSeconds(process), bytes: loopbackBytes())
        sleep(duration)
        let used = try (cpu: ProcessUse.cpuSeconds(process) - before.cpu, bytes: loopbackBytes() - before.bytes)
        run.report.state("memory", "MB", try ProcessUse.megabytes(process, "VmRSS"), below: 30)
        run.report.state("processor", "% of a core", used.cpu / Double(duration) * 100, below: 0.5)
        guard broker == nil else {
            return run.report.note(
                """
                The network is measured with --bootstrap: the embedded broker holds fetches whatever comes, so an \
                agent asks it often.
                """)
        }
        guard !run.isQuick else {
            return run.report.note(
                "The network is measured without --quick: an agent comes to rest within two minutes.")
        }
        run.report.state("network", "MB a day", used.bytes / Double(duration) * 86_400 / 1_000_000, below: 3)
        run.report.state("connections", "", try Double(connections(process, servers)), below: 4)
        run.report.note(
            """
            The network is all that passed the loopback interface, headers of TCP and IP with it: what other programs \
            send there counts, too.
            """)
    }

    /// The bytes that have passed the loopback interface: everything that is sent there is received there.
    private func loopbackBytes() throws -> Double {
        let line = Machine.lines("/proc/net/dev").first { $0.drop(while: \.isWhitespace).hasPrefix("lo:") }
        let fields = line?.split(separator: ":").last?.split(whereSeparator: \.isWhitespace)
        guard let received = fields?.first.flatMap({ Double($0) }) else {
            throw Failure("The loopback interface can't be read.")
        }
        return received
    }

    /// The number of connections of the process to the brokers.
    private func connections(_ process: Process, _ brokers: [String]) throws -> Int {
        let folder = "/proc/\(process.processIdentifier)/fd"
        let sockets = Set(
            try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
            })
        let ports = Set(brokers.compactMap { $0.split(separator: ":").last.flatMap { UInt16($0) } })
        // The third field is the remote address, with the port in hexadecimal digits; the fourth is the state, 01 for
        // an established connection; the tenth is the inode, which the descriptor's link contains.
        return Machine.lines("/proc/net/tcp").count { line in
            let fields = line.split(whereSeparator: \.isWhitespace)
            guard fields.count > 9, fields[3] == "01", let port = fields[2].split(separator: ":").last else {
                return false
            }
            return UInt16(port, radix: 16).map(ports.contains) == true && sockets.contains("socket:[\(fields[9])]")
        }
    }
}
