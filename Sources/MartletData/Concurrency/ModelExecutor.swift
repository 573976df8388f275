import Dispatch

/// Runs code that uses a context.
public protocol ModelExecutor: Executor {
    var modelContext: ModelContext { get }
}

/// Runs code that uses a context, one job at a time.
public protocol SerialModelExecutor: ModelExecutor, SerialExecutor {}

/// Runs the jobs of a ``ModelActor`` on a queue of its own, so that waiting for SQLite blocks no thread of Swift's
/// pool.
public final class DefaultSerialModelExecutor: SerialModelExecutor, @unchecked Sendable {
    // Safe because only the queue and the context are shared, and whoever has the executor uses the context in its jobs
    // only, as `ModelActor.modelContext` does.
    public let modelContext: ModelContext
    private let queue: DispatchQueue

    /// - Parameter modelContext: must not be used by anybody else from now on.
    public init(modelContext: ModelContext) {
        self.modelContext = modelContext
        queue = DispatchQueue(label: "martlet.model-actor")
        modelContext.autosave.runs(on: queue)
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
