import Foundation

/// A file with a token for OAUTHBEARER, which something else replaces before the token ends.
package struct KafkaTokenFile: Sendable {
    package let path: String
    /// What the user is called where the token does not say.
    let principal: String

    /// How long a token counts for librdkafka, in milliseconds, however long it is good for: after four fifths of that
    /// the file is read again. So it takes no longer until one that was corrected is shown to the brokers.
    private static let lifetime: Int64 = 60_000
    /// Brokers take less for a login (`sasl.server.max.receive.size`).
    private static let maxBytes = 256 << 10

    /// Milliseconds since 1970.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

    /// Reads the token that is in the file now. Blocks for no longer than reading takes.
    ///
    /// - Throws: where there is no token, it has expired, or every user of the machine can get at it.
    package func read(now: Int64 = Self.now) throws(KafkaTokenError) -> KafkaToken {
        do throws(KafkaTokenError) {
            let token = try KafkaToken(contents())
            if let expiry = token.expiry, expiry <= now {
                throw KafkaTokenError("expired at \(Self.text(of: expiry))")
            }
            return token
        } catch {
            throw KafkaTokenError("\(path) \(error.reason)")
        }
    }

    /// Until when a token counts for librdkafka, in milliseconds since 1970.
    func end(of token: KafkaToken, now: Int64) -> Int64 {
        min(token.expiry ?? .max, now + Self.lifetime)
    }

    /// A time as ISO 8601 has it.
    package static func text(of milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
    }

    private func contents() throws(KafkaTokenError) -> String {
        // Without waiting for somebody who writes, where it is a pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw KafkaTokenError("can't be read: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            throw KafkaTokenError("is not a file")
        }
        // Its group may: what fetches tokens often runs as another user than what shows them.
        guard facts.st_mode & 0o006 == 0 else {
            let mode = String(facts.st_mode & 0o777, radix: 8)
            let what = facts.st_mode & 0o002 != 0 ? "written" : "read"
            throw KafkaTokenError(
                "can be \(what) by every user of this machine (mode 0\(mode)); run: chmod o-rwx \(path)")
        }
        guard facts.st_size <= Self.maxBytes else {
            throw KafkaTokenError("has \(facts.st_size) bytes: it is some other file")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        guard let text = String(data: (try? handle.readToEnd()) ?? Data(), encoding: .utf8) else {
            throw KafkaTokenError("is not text")
        }
        return text
    }
}

extension KafkaConfiguration {
    /// The file whose token is shown to the brokers, where it is one.
    package var tokenFile: KafkaTokenFile? {
        guard let credentials, let path = credentials.tokenFile else { return nil }
        return KafkaTokenFile(path: path, principal: credentials.username.isEmpty ? "martlet" : credentials.username)
    }
}
