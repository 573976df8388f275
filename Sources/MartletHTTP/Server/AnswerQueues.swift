import Dispatch

/// Runs request handlers on two serial queues: one for probes, one for requests that read the store.
///
/// Reading the store may take long, on a slow disk or with a large history. Probes must not wait for it, or an
/// orchestrator would consider the agent dead.
struct AnswerQueues: Sendable {
    private let quick = DispatchQueue(label: "martlet.http.quick")
    private let slow = DispatchQueue(label: "martlet.http")
    private let isQuick: @Sendable (HTTPRequest) -> Bool

    /// - Parameter isQuick: returns true if the answer to a request never blocks.
    init(isQuick: @escaping @Sendable (HTTPRequest) -> Bool) { self.isQuick = isQuick }

    var all: [DispatchQueue] { [quick, slow] }

    func queue(for request: HTTPRequest) -> DispatchQueue { isQuick(request) ? quick : slow }
}
