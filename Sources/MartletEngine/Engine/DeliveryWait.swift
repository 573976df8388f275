import Foundation
package import MartletCore
package import MartletStore

/// Waits for a ``Delivery``, on the calling thread. A store that somebody else keeps locked is waited for, too.
package struct DeliveryWait {
    /// What a wait came to, or what was missing when its time was over.
    package enum Outcome: Sendable {
        case delivered
        /// So many transactions are still to be published.
        case unpublished(Int64)
        /// These nodes lack something.
        case missing([Delivery.Missing])
        /// The store was locked all the time.
        case busy(StoreError)
    }

    private let open: () throws -> Store
    private let receivers: Delivery.Receivers
    private let token: HistoryToken?
    private var store: Store?
    private var delivery: Delivery?

    /// The pause between two looks, in seconds. A look takes three small reads.
    private static let pause = 0.02

    /// - Parameter open: opens the store. It must be writable unless the broker alone receives the delivery. Its busy
    ///   timeout prolongs the wait.
    package init(
        to receivers: Delivery.Receivers, through token: HistoryToken?, opening open: @escaping () throws -> Store
    ) {
        self.open = open
        self.receivers = receivers
        self.token = token
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if the store is moved or replaced meanwhile, the errors
    ///   of ``Delivery/init(_:to:through:)`` and ``Delivery/missing(_:)``, and those of opening the store; not `.busy`.
    package mutating func run(until deadline: ContinuousClock.Instant) throws -> Outcome {
        while true {
            let isLast = ContinuousClock.now >= deadline
            do {
                let found = try look(isLast: isLast)
                if case .delivered? = found { return .delivered }
                if isLast, let found { return found }
            } catch let error as StoreError where error.code == .busy {
                if isLast { return .busy(error) }
            }
            Thread.sleep(forTimeInterval: Self.pause)
        }
    }

    /// - Returns: nil if not everything is published; the number is read only for the last look.
    private mutating func look(isLast: Bool) throws -> Outcome? {
        let store = try self.store ?? open()
        self.store = store
        try store.checkIsInPlace()
        var delivery = try self.delivery ?? Delivery(store, to: receivers, through: token)
        defer { self.delivery = delivery }
        if let missing = try delivery.missing(store) { return missing.isEmpty ? .delivered : .missing(missing) }
        return isLast ? .unpublished(try SyncStatus.read(store).unpublished) : nil
    }
}
