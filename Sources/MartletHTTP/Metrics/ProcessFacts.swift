import Foundation

/// The kernel's data on this process: https://man7.org/linux/man-pages/man5/proc.5.html
package enum ProcessFacts {
    package static var families: [MetricFamily] {
        var families: [MetricFamily] = []
        func add(_ name: String, _ kind: MetricFamily.Kind, _ value: Double?) {
            guard let value else { return }
            families.append(
                .init(name: name, kind: kind, help: MetricCatalog.help(name), samples: [.init(value: value)]))
        }
        let ticks = Double(sysconf(CInt(_SC_CLK_TCK)))
        // The process name, in brackets, may contain spaces.
        let fields = read("/proc/self/stat")?.split(separator: ")").last?.split(separator: " ").map(String.init) ?? []
        if fields.count > 21 {
            add(
                "process_resident_memory_bytes", .gauge,
                Double(fields[21]).map { $0 * Double(sysconf(CInt(_SC_PAGESIZE))) })
            if let user = Double(fields[11]), let system = Double(fields[12]) {
                add("process_cpu_seconds_total", .counter, (user + system) / ticks)
            }
            let boot = read("/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }?.dropFirst(6)
            if let boot = boot.flatMap({ Double($0) }), let start = Double(fields[19]) {
                add("process_start_time_seconds", .gauge, boot + start / ticks)
            }
        }
        let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        add("process_open_fds", .gauge, files.map { Double($0) })
        return families
    }

    private static func read(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
