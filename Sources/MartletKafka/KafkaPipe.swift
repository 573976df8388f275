import Synchronization

/// One connection through a ``PortForwarder``.
///
/// It knows only the frames of the protocol: every request begins with its size, API key, version and correlation ID,
/// every response with its size and correlation ID (Kafka protocol guide, "Request and Response Headers"). In a fetch
/// it also knows the position of the wait time: see ``FetchWait``.
final class KafkaPipe: Sendable {
    /// Metadata and FindCoordinator, the requests whose answers contain broker addresses.
    private static let apiKeysWithAddresses: Set<Int16> = [3, 10]
    /// The maximum size of an answer that is rewritten, in bytes. An embedded broker's answers are smaller.
    private static let rewriteMax: Int32 = 16 << 20

    private let client: Int32
    private let broker: Int32
    private let rewriter: BrokerPortRewriter
    /// The correlation IDs of the answers to rewrite.
    private let awaited = Mutex<Set<Int32>>([])

    init(client: Int32, broker: Int32, rewriter: BrokerPortRewriter) {
        self.client = client
        self.broker = broker
        self.rewriter = rewriter
    }

    /// Passes requests on to the broker. Blocks until one of the sockets is closed.
    @Sendable func passRequests() {
        while let head = LoopbackSocket.read(client, count: 12) {
            let size: Int32 = Self.integer(head, 0)
            guard size >= 8 else { return }
            if Self.apiKeysWithAddresses.contains(Self.integer(head, 4)) {
                _ = awaited.withLock { $0.insert(Self.integer(head, 8)) }
            }
            guard let body = FetchWait.header(of: head, size: size) else {
                guard LoopbackSocket.write(broker, head), pass(from: client, to: broker, count: Int(size) - 8) else {
                    return
                }
                continue
            }
            guard var request = LoopbackSocket.read(client, count: body.count) else { return }
            FetchWait.limit(in: &request, version: body.version)
            guard LoopbackSocket.write(broker, head + request) else { return }
        }
    }

    /// Passes responses on to the client. Blocks until one of the sockets is closed.
    @Sendable func passResponses() {
        while let head = LoopbackSocket.read(broker, count: 8) {
            let size: Int32 = Self.integer(head, 0)
            guard size >= 4 else { return }
            if awaited.withLock({ $0.remove(Self.integer(head, 4)) }) != nil, size <= Self.rewriteMax {
                guard var body = LoopbackSocket.read(broker, count: Int(size) - 4) else { return }
                rewriter.rewrite(&body)
                guard LoopbackSocket.write(client, head + body) else { return }
            } else {
                guard LoopbackSocket.write(client, head), pass(from: broker, to: client, count: Int(size) - 4)
                else { return }
            }
        }
    }

    private func pass(from: Int32, to: Int32, count: Int) -> Bool {
        var left = count
        while left > 0 {
            guard let bytes = LoopbackSocket.read(from, count: min(left, 1 << 16)), LoopbackSocket.write(to, bytes)
            else { return false }
            left -= bytes.count
        }
        return true
    }

    /// Returns a number of the protocol, which is big-endian.
    static func integer<T: FixedWidthInteger>(_ bytes: [UInt8], _ index: Int) -> T {
        bytes[index..<index + T.bitWidth / 8].reduce(0) { $0 << 8 | T(truncatingIfNeeded: $1) }
    }
}
