import Dispatch

/// Runs request handlers on three serial queues: one for probes, one for requests that read the store, and one for
/// those that change it.
///
/// Reading the store may take long, on a slow disk or with a large history. Probes must not wait for it, or an
/// orchestrator would consider the agent dead. Changing it waits for other writers, and may be a lot of work: metrics
/// must not be missing meanwhile.
struct AnswerQueues: Sendable {
    private let quick = DispatchQueue(label: "martlet.http.quick")
    private let slow = DispatchQueue(label: "martlet.http")
    private let changing = DispatchQueue(label: "martlet.http.changing")
    private let isQuick: @Sendable (HTTPRequest) -> Bool

    /// - Parameter isQuick: returns true if the answer to a request never blocks.
    init(isQuick: @escaping @Sendable (HTTPRequest) -> Bool) { self.isQuick = isQuick }

    var all: [DispatchQueue] { [quick, slow, changing] }

    func queue(for request: HTTPRequest) -> DispatchQueue {
        if request.method == "POST" { return changing }
        return isQuick(request) ? quick : slow
    }
}
