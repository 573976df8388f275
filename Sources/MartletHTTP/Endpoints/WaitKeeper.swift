import MartletAgent
import MartletStore
import MartletSync
import Synchronization

/// Waits for HTTP clients until what is committed in the store has been delivered, on a connection of its own.
///
/// Calls wait for each other, and block the calling thread for as long as a look into the store takes.
package final class WaitKeeper: Sendable {
    /// The most waits at a time, if there are no streams. Each keeps a connection for minutes.
    package static let most = RequestPlaces.most

    private let path: String
    private let places: RequestPlaces
    private let store = Mutex<Store?>(nil)

    /// - Parameter places: those of all requests that keep a connection.
    init(path: String, places: RequestPlaces) {
        self.path = path
        self.places = places
    }

    /// - Returns: nil if there are too many waits and streams.
    /// - Throws: ``/MartletCore/StoreError`` if the request is invalid, or the store can't be read.
    func begin(_ request: HTTPRequest) throws -> Wait? {
        let request = try WaitRequest(request)
        guard let place = places.take() else { return nil }
        return Wait(
            self, place, try withStore { try Delivery($0, to: request.receivers, through: request.through) },
            deadline: .now + request.timeout)
    }

    fileprivate func withStore<T: Sendable>(_ body: (Store) throws -> T) throws -> T {
        try store.withLock { store in
            if let store { return try body(store) }
            var configuration = StoreConfiguration()
            // This connection reads a few rows, and writes one.
            configuration.cacheKiB = 256
            let opened = try Store(path: path, configuration: configuration)
            store = opened
            return try body(opened)
        }
    }

    /// One requested wait.
    final class Wait: Sendable {
        private let keeper: WaitKeeper
        private let place: RequestPlaces.Place
        private let delivery: Mutex<Delivery>
        private let deadline: ContinuousClock.Instant

        fileprivate init(
            _ keeper: WaitKeeper, _ place: RequestPlaces.Place, _ delivery: Delivery, deadline: ContinuousClock.Instant
        ) {
            self.keeper = keeper
            self.place = place
            self.delivery = Mutex(delivery)
            self.deadline = deadline
        }

        /// Returns 200 once everything is delivered, 504 after the deadline, and nil before.
        ///
        /// - Throws: the same errors as ``/MartletEngine/Delivery/missing(_:)``.
        func look() throws -> HTTPResponse? {
            try keeper.withStore { store in
                let missing = try delivery.withLock { try $0.missing(store) }
                if let missing, missing.isEmpty { return .json(200, try JSON.line(["done": true])) }
                guard ContinuousClock.now >= deadline else { return nil }
                var document: [String: Any?] = ["done": false, "published": missing != nil]
                if let missing {
                    document["missing"] = missing.map {
                        ["node": $0.node, "known": $0.isKnown, "transactions": $0.count] as [String: Any?]
                    }
                } else {
                    document["unpublished"] = try SyncStatus.read(store).unpublished
                }
                return .json(504, try JSON.line(document))
            }
        }
    }
}
