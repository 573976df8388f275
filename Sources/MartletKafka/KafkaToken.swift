import Foundation

/// A token for OAUTHBEARER, with its claims if it is a JWT (RFC 7519).
///
/// The claims are not verified: that is up to the broker.
package struct KafkaToken: Sendable, Equatable {
    package var value: Secret
    /// When the token expires, in milliseconds since 1970. Nil if it does not say.
    package var expiry: Int64?
    /// The user that the token was issued to. Nil if it does not say.
    package var subject: String?

    /// - Parameter text: the token. Surrounding whitespace is removed.
    /// - Throws: `KafkaTokenError` if nothing is left, or if the text contains characters that a token can't contain:
    ///   a control character would end it too early in the login.
    package init(_ text: String) throws(KafkaTokenError) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !text.isEmpty else { throw KafkaTokenError("is empty") }
        guard text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw KafkaTokenError("does not hold a token: a token has only visible ASCII characters")
        }
        let claims = Self.claims(of: text)
        value = Secret(text)
        expiry = claims?.exp.flatMap { Self.times.contains($0) ? Int64($0 * 1000) : nil }
        subject = claims?.sub.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The valid expiry times, in seconds since 1970: up to the end of the year 9999.
    private static let times = 0.0...253_402_300_799.0

    private struct Claims: Decodable {
        var exp: Double?
        var sub: String?

        private enum CodingKeys: String, CodingKey {
            case exp, sub
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            // A claim whose type is not the standard's is ignored here; the broker judges it.
            exp = try? container.decode(Double.self, forKey: .exp)
            sub = try? container.decode(String.self, forKey: .sub)
        }
    }

    /// Returns the claims of a signed or unsecured token. Returns nil for all others: encrypted tokens have five parts,
    /// opaque ones any number.
    private static func claims(of text: String) -> Claims? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var payload = String(parts[1]).replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        payload += String(repeating: "=", count: (4 - payload.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: payload) else { return nil }
        return try? JSONDecoder().decode(Claims.self, from: data)
    }
}

/// The reason why there is no usable token, phrased to follow the file's path: "FILE ...". It never shows a token.
package struct KafkaTokenError: Error, Sendable, Equatable, CustomStringConvertible {
    package var reason: String

    package init(_ reason: String) { self.reason = reason }

    package var description: String { reason }
}
