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

    /// The states of the files that are read only when an agent, or one of its connections, is made: certificates and
    /// private keys. They may be renewed under the same names.
    package var fileVersions: [String: SecretFile.Version] {
        // `location` and `keytab` are librdkafka's words for files.
        let raw = kafka.properties.filter { $0.key.hasSuffix(".location") || $0.key.hasSuffix(".keytab") }.map(\.value)
        let named = [
            kafka.tls.caLocation, kafka.tls.certificateLocation, kafka.tls.keyLocation, security.signingKeyFile,
        ].compactMap(\.self)
        return Dictionary(
            (named + raw).compactMap { path in SecretFile.version(path).map { (path, $0) } },
            uniquingKeysWith: { first, _ in first })
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
