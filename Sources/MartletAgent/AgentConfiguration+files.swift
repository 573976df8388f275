import Foundation
import MartletKafka

extension AgentConfiguration {
    /// The files for TLS that can't be read, as `key: path can't be read: why`.
    ///
    /// For an unreadable file, librdkafka would only repeat an error number of OpenSSL.
    public var unreadableFiles: [String] {
        let tls = kafka.tls
        let certificates = [
            ("kafka.tls.certificateFile", tls.certificateLocation), ("kafka.tls.keyFile", tls.keyLocation),
        ].map { key, path in path.flatMap { Self.problem(key, $0) } }
        // `probe` makes librdkafka search the usual places of operating systems.
        let authorities = tls.caLocation.flatMap {
            $0 == "probe" ? nil : Self.problem("kafka.tls.caFile", $0, mayBeFolder: true)
        }
        return ([authorities] + certificates).compactMap { $0 }
    }

    private static func problem(_ key: String, _ path: String, mayBeFolder: Bool = false) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return "\(key): \(path) can't be read: \(String(cString: strerror(errno)))" }
        defer { close(descriptor) }
        var facts = stat()
        guard !mayBeFolder, fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFDIR else { return nil }
        return "\(key): \(path) can't be read: it is a directory"
    }
}
