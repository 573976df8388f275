import Foundation
public import MartletSync

/// Collects acknowledgements, and lets a test wait for them.
///
/// Safe because the condition's lock is held during every access.
public final class AcknowledgementBox: @unchecked Sendable {
    private let condition = NSCondition()
    private var acknowledgements: [Acknowledgement] = []

    public init() {}

    public func add(_ acknowledgement: Acknowledgement) {
        condition.withLock {
            acknowledgements.append(acknowledgement)
            condition.broadcast()
        }
    }

    /// All acknowledgements so far, in the order of their arrival.
    public var all: [Acknowledgement] {
        condition.withLock { acknowledgements }
    }

    /// Waits until at least `count` acknowledgements have arrived.
    ///
    /// - Throws: ``BusContractError`` at the deadline of ``BusContract``.
    @discardableResult
    public func wait(for count: Int) throws -> [Acknowledgement] {
        let end = Date(timeIntervalSinceNow: BusContract.deadline / .seconds(1))
        condition.lock()
        defer { condition.unlock() }
        while acknowledgements.count < count {
            guard condition.wait(until: end) else {
                throw BusContractError("\(acknowledgements.count) of \(count) acknowledgements came")
            }
        }
        return acknowledgements
    }
}
