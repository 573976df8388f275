/// The body of a response that goes on until the client or the server ends it.
///
/// The server asks for the next part when the client has taken the last one: a slow client holds one part in memory.
package protocol HTTPStream: AnyObject, Sendable {
    /// Returns what comes next. The server calls it on the thread that answers requests, and never twice at a time.
    func next() -> HTTPStreamPart

    /// Calls `wake` once, on any thread, when ``next()`` may return something: at once, if something has changed since
    /// the last call. Replaces the closure of the call before.
    func whenChanged(_ wake: @escaping @Sendable () -> Void)
}

package enum HTTPStreamPart: Sendable, Equatable {
    case some(String)
    /// The end, with a last text.
    case last(String)
    /// There is nothing yet.
    case nothing
}
