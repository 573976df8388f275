import Foundation

/// The IP address and port that a server listens on.
public struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
    /// An IPv4 or IPv6 address, without brackets.
    public var host: String
    /// 0: any free port.
    public var port: Int

    /// - Parameter text: `HOST:PORT`, with an IP address or `localhost` as the host, and brackets around an IPv6
    ///   address. Names are not looked up: their meaning may change after the check.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = String(text[..<colon])
        if host == "localhost" { host = "127.0.0.1" }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard Self.bytes(host, AF_INET6) != nil else { return nil }
        } else {
            guard Self.bytes(host, AF_INET) != nil else { return nil }
        }
        self.host = host
        self.port = Int(port)
    }

    /// True if only programs of this machine can reach the address.
    public var isLoopback: Bool { Self.isLoopback(host) }

    /// Returns true for an address of the loopback interface, and false for every other text.
    public static func isLoopback(_ address: String) -> Bool {
        if let bytes = bytes(address, AF_INET) { return bytes[0] == 127 }
        guard let bytes = bytes(address, AF_INET6) else { return false }
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xff && bytes[11] == 0xff
        return isMapped ? bytes[12] == 127 : bytes[..<15].allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    private static func bytes(_ address: String, _ family: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        return inet_pton(family, address, &bytes) == 1 ? bytes : nil
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
