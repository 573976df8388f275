package import MartletBus
package import MartletCore
package import MartletMerge

/// Where a publisher stands, and what follows from each event. Pure: it neither sends nor waits, and has no clock.
///
/// Enqueue, send, wait for acknowledgements. Whatever goes wrong leads back to the acknowledged prefix.
package struct PublishCycle {
    package enum State: Equatable {
        /// Transactions go out as far as there is room.
        case sending
        /// A message was not delivered. Nothing goes out until every message in flight is answered.
        case draining
        /// Every message is answered, and at least one of them was not delivered. Publishing restarts after the
        /// acknowledged prefix.
        case drained
    }

    /// Messages that were not delivered.
    package struct Failure: Equatable {
        package var count: Int
        /// The sequence and the error of the first of them.
        package var first: Int64
        package var error: BusError

        package init(count: Int, first: Int64, error: BusError) {
            self.count = count
            self.first = first
            self.error = error
        }
    }

    package private(set) var window: PublishWindow
    /// The acknowledged sequence that the store has.
    package private(set) var stored: Int64
    package private(set) var backoff = Backoff()
    /// What was not delivered since the last restart.
    package private(set) var failure: Failure?
    /// True once the broker has refused a message as too large.
    package private(set) var isTooLarge = false
    /// True after a failure, until the broker has acknowledged something.
    private var isUnproven = false

    package init(acknowledged: Int64) {
        window = PublishWindow(acknowledged: acknowledged)
        stored = acknowledged
    }

    package var state: State {
        guard window.hasFailed else { return .sending }
        return window.isAnswered ? .drained : .draining
    }

    /// True if the store lacks something that was acknowledged.
    package var hasNews: Bool { window.acknowledged != stored }

    // MARK: Events

    /// A transaction goes out in this many messages.
    package mutating func begin(_ sequence: Int64, messages: Int, bytes: Int) {
        window.send(sequence, messages: messages, bytes: bytes)
    }

    /// The broker has answered one message.
    ///
    /// - Returns: the error to report. Nil for an acknowledgement, and for a producer that this node has closed itself.
    package mutating func take(_ answer: Acknowledgement) -> BusError? {
        let sequence = Int64(answer.tag)
        switch answer.result {
        case .success:
            let before = window.acknowledged
            window.acknowledge(sequence)
            if window.acknowledged > before { isUnproven = false }
            return nil
        case .failure(let error):
            window.fail(sequence)
            if error.code == .messageTooLarge { isTooLarge = true }
            guard error.code != .closed else { return nil }
            failure =
                failure.map { Failure(count: $0.count + 1, first: $0.first, error: $0.error) }
                ?? Failure(count: 1, first: sequence, error: error)
            return error
        }
    }

    /// These messages of a transaction will never go out: the producer refused one of them, or was closed.
    package mutating func drop(_ sequence: Int64, messages: Int, because error: BusError? = nil) {
        for _ in 0..<messages { window.fail(sequence) }
        if error?.code == .messageTooLarge { isTooLarge = true }
    }

    /// An attempt went through, or there was nothing to do.
    package mutating func succeed() {
        if !isUnproven { backoff.reset() }
    }

    /// An attempt failed before anything was sent.
    package mutating func fail() { backoff.fail() }

    /// Restarts after the acknowledged prefix, in the state ``State/drained``.
    ///
    /// - Returns: what was not delivered.
    package mutating func restart() -> Failure? {
        defer { failure = nil }
        isTooLarge = false
        isUnproven = true
        window.restart()
        backoff.fail()
        return failure
    }

    /// The topic has lost everything after this sequence, which the store has as acknowledged.
    package mutating func rewind(to sequence: Int64) {
        window.restart(from: sequence)
        stored = sequence
    }

    /// The store has everything that was acknowledged.
    package mutating func noteStored() { stored = window.acknowledged }
}
