import Foundation
import MartletCore

/// A file with a token for OAUTHBEARER. Another program replaces it before the token expires.
package struct KafkaTokenFile: Sendable {
    package let path: String
    /// The user name for tokens that contain none.
    let principal: String

    /// The lifetime of a token that librdkafka is told, in milliseconds, however long the token is valid. librdkafka
    /// asks again after four fifths of it, and the file is read again. So a corrected token reaches the brokers no
    /// later than that.
    private static let lifetime: Int64 = 60_000
    /// The maximum size of the file, in bytes. Brokers accept less for a login (`sasl.server.max.receive.size`).
    private static let maxBytes = 256 << 10

    /// The current time in milliseconds since 1970.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

    /// Reads the present token from the file. Blocks only while it reads, and never waits for a writer.
    ///
    /// - Throws: `KafkaTokenError` if there is no token, if it has expired, or if every user of the machine can read
    ///   or write the file.
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

    /// Returns the expiry time to tell librdkafka, in milliseconds since 1970.
    func end(of token: KafkaToken, now: Int64) -> Int64 {
        min(token.expiry ?? .max, now + Self.lifetime)
    }

    /// Returns a time in ISO 8601 format.
    package static func text(of milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
    }

    private func contents() throws(KafkaTokenError) -> String {
        // If the path is a pipe, this must not wait for a writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw KafkaTokenError("can't be read: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            throw KafkaTokenError("is not a file")
        }
        // The file's group may access it: the program that fetches tokens often runs as another user than the one that
        // uses them.
        guard facts.st_mode & 0o006 == 0 else {
            let mode = String(facts.st_mode & 0o777, radix: 8)
            let what = facts.st_mode & 0o002 != 0 ? "written" : "read"
            throw KafkaTokenError(
                "can be \(what) by every user of this machine (mode 0\(mode)); "
                    + "run: chmod o-rwx \(ShellWord.quoted(path))")
        }
        guard facts.st_size <= Self.maxBytes else {
            throw KafkaTokenError("has \(facts.st_size) bytes, more than a token can have")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        guard let text = String(data: (try? handle.readToEnd()) ?? Data(), encoding: .utf8) else {
            throw KafkaTokenError("is not text")
        }
        return text
    }
}

extension KafkaConfiguration {
    /// The token file that is configured, if any.
    package var tokenFile: KafkaTokenFile? {
        guard let credentials, let path = credentials.tokenFile else { return nil }
        return KafkaTokenFile(path: path, principal: credentials.username.isEmpty ? "martlet" : credentials.username)
    }
}
