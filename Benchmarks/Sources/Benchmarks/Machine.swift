import Foundation

/// Describes the machine on which the figures were measured.
enum Machine {
    static var description: String {
        let info = lines("/proc/cpuinfo")
        let model = info.first { $0.hasPrefix("model name") }?.split(separator: ":").last.map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        let gigabytes = Double(ProcessInfo.processInfo.physicalMemory) / Double(1 << 30)
        return """
            \(model ?? "unknown processor"), \(ProcessInfo.processInfo.activeProcessorCount) cores, \
            \(Int(gigabytes.rounded())) GiB
            """
    }

    static var system: String {
        let name = lines("/etc/os-release").first { $0.hasPrefix("PRETTY_NAME=") }.map {
            String($0.dropFirst(12).replacing("\"", with: ""))
        }
        let kernel = lines("/proc/sys/kernel/osrelease").first
        return [name ?? ProcessInfo.processInfo.operatingSystemVersionString, kernel.map { "kernel \($0)" }]
            .compactMap(\.self).joined(separator: ", ")
    }

    /// The current resident memory of this process.
    static var residentMegabytes: Double {
        let line = lines("/proc/self/status").first { $0.hasPrefix("VmRSS:") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? .nan) / 1000
    }

    static var load: String { lines("/proc/loadavg").first ?? "unknown" }

    static func lines(_ path: String) -> [String] {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").map(String.init)
    }
}
