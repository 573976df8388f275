import Foundation

/// What another process has used.
enum ProcessUse {
    /// Its processor time.
    static func cpuSeconds(_ process: Process) throws -> Double {
        // The fields after the name, which may contain spaces: the 12th and 13th are user and system time.
        guard process.isRunning, let line = Machine.lines("/proc/\(process.processIdentifier)/stat").first,
            let fields = line.split(separator: ")").last?.split(separator: " "), fields.count > 12,
            let user = Double(fields[11]), let system = Double(fields[12])
        else { throw Failure("The agent ended.") }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// - Parameter field: `VmRSS` for its resident memory, `VmHWM` for the most that it had.
    static func megabytes(_ process: Process, _ field: String) throws -> Double {
        let line = Machine.lines("/proc/\(process.processIdentifier)/status").first { $0.hasPrefix("\(field):") }
        guard let kilobytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Double($0) })
        else {
            throw Failure("The agent ended.")
        }
        return kilobytes / 1000
    }
}
