import Foundation
import MartletSync

/// Examines the protection of messages.
public enum SecurityDoctor {
    /// Checks the key files that the configuration names. Shows IDs and public keys, never a secret.
    public static func examine(_ security: AgentSecurity) -> [Finding] {
        var findings: [Finding] = []
        func add(_ check: String, _ read: () throws -> String) {
            do {
                findings.append(Finding(check: check, level: .ok, message: try read()))
            } catch {
                findings.append(
                    Finding(
                        check: check, level: .problem, message: "\(error)",
                        remedy: "Fix this first: the agent refuses to start."))
            }
        }
        if let path = security.keyRingFile {
            add("key ring") {
                let ring = try KeyFiles.ring(path)
                return "\(ring.ids.count) keys; messages are encrypted with \(ring.current)"
            }
        } else {
            findings.append(
                Finding(
                    check: "key ring", level: .warning, message: "messages are not encrypted",
                    remedy: "Create a key ring with `martlet key add`, and set security.keyRingFile on all nodes."))
        }
        if let path = security.signingKeyFile {
            add("signing key") { "this node signs as \(try KeyFiles.publicKey(path))" }
        }
        if security.keyRingFile != nil, security.rules.acceptPlaintext == .accept {
            findings.append(
                Finding(
                    check: "plaintext", level: .warning, message: "unencrypted messages are accepted",
                    remedy: "Remove security.acceptPlaintext once all nodes have the key ring."))
        }
        return findings
    }
}
