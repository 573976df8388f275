import Foundation

/// A token for OAUTHBEARER, with what it says of itself where it is a JWT (RFC 7519).
///
/// Nothing in it is verified: that is for the broker to do.
package struct KafkaToken: Sendable, Equatable {
    package var value: Secret
    /// When it ends, in milliseconds since 1970. Nil where it does not say.
    package var expiry: Int64?
    /// Whom it was made out to. Nil where it does not say.
    package var subject: String?

    /// - Parameter text: line ends and spaces around it are left out.
    /// - Throws: where nothing is left, or what can't be in a token: a control character would end it too early in the
    ///   login.
    package init(_ text: String) throws(KafkaTokenError) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !text.isEmpty else { throw KafkaTokenError("is empty") }
        guard text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw KafkaTokenError("holds no token: it contains other than visible ASCII characters")
        }
        let claims = Self.claims(of: text)
        value = Secret(text)
        expiry = claims?.exp.flatMap { Self.times.contains($0) ? Int64($0 * 1000) : nil }
        subject = claims?.sub.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Seconds until the end of the year 9999; what is beyond is no time.
    private static let times = 0.0...253_402_300_799.0

    private struct Claims: Decodable {
        var exp: Double?
        var sub: String?

        private enum CodingKeys: String, CodingKey {
            case exp, sub
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            // A claim of another type than the standard's says nothing here, and the broker judges it.
            exp = try? container.decode(Double.self, forKey: .exp)
            sub = try? container.decode(String.self, forKey: .sub)
        }
    }

    /// What a signed or unsecured token says. Nil for all others: encrypted ones have five parts, opaque ones any
    /// number.
    private static func claims(of text: String) -> Claims? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var payload = String(parts[1]).replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        payload += String(repeating: "=", count: (4 - payload.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: payload) else { return nil }
        return try? JSONDecoder().decode(Claims.self, from: data)
    }
}

/// Why there is no token, in the words of "FILE ...". It never shows one.
package struct KafkaTokenError: Error, Sendable, Equatable, CustomStringConvertible {
    package var reason: String

    package init(_ reason: String) { self.reason = reason }

    package var description: String { reason }
}
