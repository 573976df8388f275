public import Logging
public import ServiceLifecycle

/// Runs services while the body runs, and then shuts them down in order, the last one first.
///
/// - Throws: the error of the body, or of a service.
public func whileRunning(
    _ services: [any Service], log: Logger, _ body: () async throws -> Void
) async throws {
    let group = ServiceGroup(
        configuration: .init(services: services.map { .init(service: $0) }, logger: log))
    try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await group.run() }
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
        try result.get()
    }
}
