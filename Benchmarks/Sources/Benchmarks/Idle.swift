import Foundation
import MartletKafka
import MartletStore

/// What an agent costs that has nothing to do.
struct Idle {
    let run: Run
    let martlet: String?

    func measure() throws {
        guard let martlet else { return run.report.note("SKIPPED: no binary was given (--martlet PATH)") }
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let path = run.newFile()
        defer { run.remove(path) }
        try Store.makeBenchmark(path, .uuid, run.settings).close()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: martlet)
        process.arguments = ["run", "--store", path, "--bootstrap-servers", broker.bootstrapServers.joined(separator: ",")]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        // Long enough for what the start costs to be over.
        sleep(5)
        let duration: UInt32 = run.isQuick ? 10 : 60
        let before = try cpuSeconds(process)
        sleep(duration)
        let used = try cpuSeconds(process) - before
        run.report.state("memory", "MB", try residentMegabytes(process), below: 30)
        run.report.state("processor", "% of a core", used / Double(duration) * 100, below: 0.5)
    }

    private func cpuSeconds(_ process: Process) throws -> Double {
        // The fields after the name, which may have spaces in it: the 12th and 13th are user and system time.
        guard process.isRunning, let line = Machine.lines("/proc/\(process.processIdentifier)/stat").first,
            let fields = line.split(separator: ")").last?.split(separator: " "), fields.count > 12,
            let user = Double(fields[11]), let system = Double(fields[12])
        else { throw Failure("The agent ended.") }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    private func residentMegabytes(_ process: Process) throws -> Double {
        let line = Machine.lines("/proc/\(process.processIdentifier)/status").first { $0.hasPrefix("VmRSS:") }
        guard let kilobytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Double($0) }) else {
            throw Failure("The agent ended.")
        }
        return kilobytes / 1000
    }
}
