import Foundation
import MartletKafka
import MartletStore

/// Examines how a node would reach its brokers, without contacting them: which secrets and data travel unprotected, and
/// who can read its passwords.
public enum ConnectionDoctor {
    /// Checks the values, and the modes of the files with passwords, tokens and private keys. Shows no secret. Returns
    /// nothing if all is well.
    public static func examine(_ configuration: AgentConfiguration) -> [Finding] {
        exposedFiles(configuration.secretFiles.merging(privateKeys(configuration.kafka)) { read, _ in read })
            + unprotected(configuration.kafka)
    }

    /// The files with private keys that librdkafka reads.
    private static func privateKeys(_ kafka: KafkaConfiguration) -> [String: String] {
        var files: [String: String] = [:]
        files["kafka.tls.keyFile"] = kafka.tls.keyLocation
        files["kafka.properties.ssl.key.location"] = kafka.properties["ssl.key.location"]
        return files
    }

    private static func exposedFiles(_ files: [String: String]) -> [Finding] {
        files.sorted { $0.key < $1.key }.compactMap { key, path in
            guard let exposed = FileMode.exposed(path, beside: []) else { return nil }
            return Finding(
                check: "secrets", level: .warning, message: "\(key): \(exposed)",
                remedy:
                    "Run: chmod o-rwx \(ShellWord.quoted(path)). If somebody else may have read the secret, replace it."
            )
        }
    }

    private static func unprotected(_ kafka: KafkaConfiguration) -> [Finding] {
        let raw = kafka.properties
        let name = raw["security.protocol"]?.lowercased() ?? kafka.securityProtocol.rawValue
        guard let security = KafkaSecurityProtocol(rawValue: name), security != .ssl, security != .saslSSL else {
            return []
        }
        var findings: [Finding] = []
        let servers = raw["bootstrap.servers"]?.components(separatedBy: ",") ?? kafka.bootstrapServers
        let remote = servers.filter { !isLoopback($0) }
        if !remote.isEmpty {
            findings.append(
                Finding(
                    check: "connection", level: .warning,
                    message:
                        "anybody on the way can read and change traffic to and from \(remote.joined(separator: ", ")): "
                        + "kafka.securityProtocol is \(security.rawValue)",
                    remedy: "Use \(security == .plaintext ? "ssl" : "sasl_ssl") if the brokers offer it."))
        }
        let mechanism = raw["sasl.mechanisms"] ?? raw["sasl.mechanism"] ?? kafka.credentials?.mechanism
        if security == .saslPlaintext, let mechanism, let secret = sent[mechanism] {
            findings.append(
                Finding(
                    check: "login", level: .warning,
                    message:
                        "the \(secret) is in clear text: kafka.securityProtocol is sasl_plaintext, with \(mechanism)",
                    remedy: "Use sasl_ssl, or SCRAM-SHA-512, which keeps the password off the connection."))
        }
        return findings
    }

    /// The secrets that mechanisms send unprotected.
    private static let sent = ["PLAIN": "password", "OAUTHBEARER": "token"]

    /// - Parameter server: in librdkafka's format: with or without a port, and with or without a protocol before it.
    private static func isLoopback(_ server: String) -> Bool {
        let address = (server.components(separatedBy: "://").last ?? server)
            .trimmingCharacters(in: .whitespaces).lowercased()
        return (ListenAddress(address) ?? ListenAddress(address + ":0"))?.isLoopback ?? false
    }

    /// Examines the token file. Nil if there is none.
    static func token(_ kafka: KafkaConfiguration) -> Finding? {
        guard let file = kafka.tokenFile else { return nil }
        do throws(KafkaTokenError) {
            let token = try file.read()
            let subject = token.subject.map { "the token is for \($0)" } ?? "the token does not name a subject"
            let end = token.expiry.map { "expires at \(KafkaTokenFile.text(of: $0))" } ?? "does not say when it expires"
            return Finding(check: "token", level: .ok, message: "\(subject), and \(end)")
        } catch {
            return Finding(
                check: "token", level: .problem, message: "kafka.sasl.tokenFile: \(error.reason)",
                remedy:
                    "Check the program that fetches tokens. The agent keeps running, and syncs with a valid token.")
        }
    }
}
