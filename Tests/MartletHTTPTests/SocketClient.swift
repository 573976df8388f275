import Foundation
import MartletAgent
import MartletTestSupport

/// A client on a plain socket, which may send arbitrary bytes.
/// Safe to hand to another thread: the descriptor never changes, and the kernel orders the calls on it.
final class SocketClient: Sendable {
    private let descriptor: CInt

    struct Answer: Equatable {
        var status: Int
        var headers: [String: String]
        var body: String
    }

    /// - Throws: ``TestFailure`` if no server listens.
    init(_ address: ListenAddress) throws {
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = in_port_t(address.port).bigEndian
        inet_pton(AF_INET, address.host, &target.sin_addr)
        // No test waits longer than this for bytes that don't arrive.
        var timeout = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        let result = withUnsafePointer(to: &target) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw TestFailure("nobody listens on \(address): \(errno)")
        }
    }

    deinit { close(descriptor) }

    /// - Returns: false if the other side has closed the connection.
    @discardableResult
    func send(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Waits for the other side to close, or to send something.
    func isClosed(within milliseconds: CInt) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, milliseconds) > 0
    }

    /// Some bytes, or nil if the other side has closed the connection.
    private func receive() throws -> String? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0, errno == EAGAIN { throw TestFailure("nothing came, and the connection stayed open") }
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    /// Everything up to a text, and what came with it. For answers that don't end.
    func receive(until end: String) throws -> String {
        var (text, unsearched) = ("", "")
        while !unsearched.contains(end) {
            guard let more = try receive() else { throw TestFailure("closed before \(end), after: \(text)") }
            text += more
            // Reading megabytes would take minutes if all of them were searched again each time.
            unsearched = unsearched.suffix(end.count) + more
        }
        return text
    }

    /// Everything until the other side closes.
    func receiveAll() throws -> String {
        var text = ""
        while let more = try receive() { text += more }
        return text
    }

    /// One answer, delimited by its content length.
    func receiveAnswer(hasBody: Bool = true) throws -> Answer {
        var text = ""
        while true {
            if let answer = Self.parse(text, hasBody: hasBody) { return answer }
            guard let more = try receive() else { throw TestFailure("closed after: \(text)") }
            text += more
        }
    }

    static func parse(_ text: String, hasBody: Bool = true) -> Answer? {
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return nil }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
                in: .whitespaces)
        }
        let body = String(text[end.upperBound...])
        guard !hasBody || body.utf8.count >= Int(headers["content-length"] ?? "0") ?? 0 else { return nil }
        return Answer(status: status, headers: headers, body: body)
    }

    /// Sends one request on a connection of its own.
    static func get(
        _ address: ListenAddress, _ path: String, host: String = "localhost", token: String? = nil
    ) throws -> Answer {
        let client = try SocketClient(address)
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        client.send("GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(authorization)Connection: close\r\n\r\n")
        return try client.receiveAnswer()
    }
}
