import CMartletCurl
package import Foundation
package import MartletAgent
import MartletKafka
package import MartletSync

/// Sends requests to a collector, by libcurl: it has the system's trust store, proxies of the environment, and HTTP.
package enum CollectorClient {
    /// What is kept of a response: more than any collector has to say.
    private static let responseBytes = 16_384

    /// Blocks the calling thread for the timeout at most.
    ///
    /// - Parameter stop: ends the request when it stops, within a second. Nil: nothing does.
    package static func post(
        _ body: Data, to configuration: TelemetryConfiguration, timeout: Duration, stop: WakeSignal? = nil
    ) -> PushOutcome {
        guard let url = configuration.metricsURL else { return .cancelled }
        guard martlet_curl_is_there() else {
            return .refused("libcurl.so.4 can't be loaded. Install it: the package libcurl4 of Debian and Ubuntu.")
        }
        let lines = Self.lines(configuration).map { strdup($0) }
        defer { for line in lines { free(line) } }
        let headers: [UnsafePointer<CChar>?] = lines.map { UnsafePointer<CChar>($0) } + [nil]
        var response = [CChar](repeating: 0, count: responseBytes)
        let result: martlet_post_result = response.withUnsafeMutableBufferPointer { response in
            Self.withCString(configuration.caFile) { caFile in
                headers.withUnsafeBufferPointer { headers in
                    body.withUnsafeBytes { body in
                        url.withCString { url -> martlet_post_result in
                            var post = martlet_post()
                            post.url = url
                            post.headers = headers.baseAddress
                            post.ca_file = caFile
                            post.body = body.baseAddress
                            post.body_length = body.count
                            post.timeout_milliseconds = Int(max(1, timeout.wholeMilliseconds))
                            post.response = response.baseAddress
                            post.response_capacity = response.count
                            if let stop {
                                post.context = Unmanaged.passUnretained(stop).toOpaque()
                                post.is_cancelled = { context in
                                    guard let context else { return false }
                                    return Unmanaged<WakeSignal>.fromOpaque(context).takeUnretainedValue().isStopped
                                }
                            }
                            return martlet_curl_post(&post)
                        }
                    }
                }
            }
        }
        if result.cancelled { return .cancelled }
        guard result.status > 0 else {
            let reason = withUnsafeBytes(of: result.error) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            return .failed(reason, retryAfter: nil)
        }
        let text = String(
            decoding: response.prefix(result.response_length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return PushOutcome(status: Int(result.status), body: text, retryAfter: Int64(result.retry_after_seconds))
    }

    /// The request's headers. They may hold secrets.
    private static func lines(_ configuration: TelemetryConfiguration) -> [String] {
        let names = Set(configuration.headers.keys.map { $0.lowercased() })
        // libcurl would wait for the server's consent to large bodies.
        var lines = ["Content-Type: application/json", "Expect:"]
        if !names.contains("user-agent") { lines.append("User-Agent: martlet/\(AgentVersion.current)") }
        lines += configuration.headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.value)" }
        return lines
    }

    private static func withCString<R>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> R) -> R {
        guard let text else { return body(nil) }
        return text.withCString { body($0) }
    }
}
