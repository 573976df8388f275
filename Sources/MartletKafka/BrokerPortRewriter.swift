/// Replaces the port in the broker addresses of a Kafka response.
///
/// In every version of Metadata and FindCoordinator, an address is the host as text, followed by the port as a 32-bit
/// number. The embedded broker's host is always `127.0.0.1`, so an address can be found by its bytes, and its length
/// does not change.
struct BrokerPortRewriter: Sendable {
    private let old: [UInt8]
    private let new: [UInt8]

    init(from: UInt16, to: UInt16) {
        old = Self.address(from)
        new = Self.address(to)
    }

    func rewrite(_ response: inout [UInt8]) {
        var index = 0
        while index + old.count <= response.count {
            if response[index] == old[0], response[index..<index + old.count].elementsEqual(old) {
                response.replaceSubrange(index..<index + old.count, with: new)
                index += old.count
            } else {
                index += 1
            }
        }
    }

    private static func address(_ port: UInt16) -> [UInt8] {
        Array("127.0.0.1".utf8) + [0, 0, UInt8(port >> 8), UInt8(port & 0xff)]
    }
}
