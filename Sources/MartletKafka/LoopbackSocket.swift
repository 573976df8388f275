import Foundation
import MartletBus

/// Blocking TCP sockets on 127.0.0.1, by their file descriptors.
package enum LoopbackSocket {
    /// What follows if no connection could be accepted.
    package enum Refusal: Sendable, Equatable {
        case retry
        /// Retry after a pause.
        case pause
        case end
    }

    /// How long a listener waits for other connections to end.
    private static let pause = 0.05

    /// - Parameter code: the `errno` of `accept`.
    package static func refusal(_ code: Int32) -> Refusal {
        switch code {
        // The client may already be gone.
        case EINTR, ECONNABORTED: .retry
        // Too many connections are open. The client waits until others have ended.
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: .pause
        default: .end
        }
    }

    static func listen(port: UInt16) throws(BusError) -> Int32 {
        let descriptor = make()
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        let isListening = withAddress(port) { bind(descriptor, $0, $1) } == 0 && Foundation.listen(descriptor, 64) == 0
        guard isListening else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw BusError(
                .configuration, "can't listen on port \(port): \(reason)",
                hint: "Choose another port, or stop the program that uses this one")
        }
        return descriptor
    }

    /// Waits for a connection. Returns nil once the listener is shut down.
    static func accept(_ listener: Int32) -> Int32? {
        while true {
            let descriptor = Foundation.accept(listener, nil, nil)
            if descriptor >= 0 {
                setNoDelay(descriptor)
                return descriptor
            }
            switch refusal(errno) {
            case .retry: continue
            case .pause: Thread.sleep(forTimeInterval: pause)
            case .end: return nil
            }
        }
    }

    static func connect(port: UInt16) -> Int32? {
        let descriptor = make()
        guard withAddress(port, { Foundation.connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            return nil
        }
        setNoDelay(descriptor)
        return descriptor
    }

    /// Reads exactly `count` bytes. Returns nil if the stream ends before that.
    static func read(_ descriptor: Int32, count: Int) -> [UInt8]? {
        var isWhole = true
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let got = recv(descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, 0)
                if got < 0 && errno == EINTR { continue }
                guard got > 0 else {
                    isWhole = false
                    return
                }
                filled += got
            }
        }
        return isWhole ? bytes : nil
    }

    /// Writes all bytes. Returns false if the connection breaks.
    static func write(_ descriptor: Int32, _ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                let start = buffer.baseAddress.map { $0 + sent }
                let count = send(descriptor, start, buffer.count - sent, Int32(MSG_NOSIGNAL))
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }

    /// Ends all reading and writing on a socket, including calls in progress on other threads.
    static func shutDown(_ descriptor: Int32) {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    static func close(_ descriptor: Int32) {
        Foundation.close(descriptor)
    }

    private static func make() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    private static func setNoDelay(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func withAddress(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
