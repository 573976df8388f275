import Logging
import ServiceLifecycle
import UnixSignals

/// Waits until a signal stops the program.
enum Waiting {
    static func untilStopped() async throws {
        let group = ServiceGroup(
            configuration: .init(
                services: [Idle()], gracefulShutdownSignals: [.sigterm, .sigint], logger: makeLogger(level: .warning)))
        try await group.run()
    }

    private struct Idle: Service {
        func run() async throws { try await gracefulShutdown() }
    }
}
