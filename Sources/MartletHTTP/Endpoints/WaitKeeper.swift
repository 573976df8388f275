import MartletAgent
import MartletStore
import MartletSync
import Synchronization

/// Waits for HTTP clients until what is committed in the store has been delivered, on connections of its own.
///
/// Calls wait for each other, and block the calling thread for as long as a look into the store takes. A store that
/// another program keeps locked is waited for, too.
package final class WaitKeeper: Sendable {
    /// The most waits at a time, if there are no streams. Each keeps a connection for minutes.
    package static let most = RequestPlaces.most

    private let places: RequestPlaces
    /// Neither opening it nor reading waits for other writers.
    private let reader: KeptStore
    /// Asks other nodes for reports, which is a write.
    private let writer: KeptStore

    /// - Parameter places: those of all requests that keep a connection.
    init(path: String, places: RequestPlaces) {
        self.places = places
        reader = KeptStore(path: path, isReadOnly: true)
        writer = KeptStore(path: path, isReadOnly: false)
    }

    /// - Returns: nil if there are too many waits and streams.
    /// - Throws: ``/MartletCore/StoreError`` if the request is invalid, or the store can't be read.
    func begin(_ request: HTTPRequest) throws -> Wait? {
        let request = try WaitRequest(request)
        guard let place = places.take() else { return nil }
        let delivery = try reader.use { try Delivery($0, to: request.receivers, through: request.through) }
        return Wait(
            place, request.receivers == .broker ? reader : writer, delivery, deadline: .now + request.timeout)
    }

    /// One requested wait.
    final class Wait: Sendable {
        private let place: RequestPlaces.Place
        private let store: KeptStore
        private let delivery: Mutex<Delivery>
        private let deadline: ContinuousClock.Instant

        fileprivate init(
            _ place: RequestPlaces.Place, _ store: KeptStore, _ delivery: Delivery, deadline: ContinuousClock.Instant
        ) {
            self.place = place
            self.store = store
            self.delivery = Mutex(delivery)
            self.deadline = deadline
        }

        /// Returns 200 once everything is delivered, 504 after the deadline, and nil before.
        ///
        /// - Throws: the same errors as ``/MartletEngine/Delivery/missing(_:)``, and those of opening the store; not
        ///   `.busy`.
        func look() throws -> HTTPResponse? {
            do {
                return try store.use(answer)
            } catch let error as StoreError where error.code == .busy {
                guard ContinuousClock.now >= deadline else { return nil }
                return .json(504, try JSON.line(["done": false, "locked": "\(error)"]))
            }
        }

        private func answer(_ store: Store) throws -> HTTPResponse? {
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

/// A connection that is opened when it is first used, and kept. Calls wait for each other.
private final class KeptStore: Sendable {
    /// How long one look waits for the store's lock. Short: requests that read the store are answered on one thread.
    private static let busyTimeout = Duration.milliseconds(100)

    private let path: String
    private let isReadOnly: Bool
    private let store = Mutex<Store?>(nil)

    init(path: String, isReadOnly: Bool) {
        self.path = path
        self.isReadOnly = isReadOnly
    }

    /// - Throws: ``/MartletCore/StoreError`` when the store can't be opened, and the errors of `body`.
    func use<T: Sendable>(_ body: (Store) throws -> T) throws -> T {
        try store.withLock { store in
            if let store { return try body(store) }
            var configuration = StoreConfiguration()
            configuration.isReadOnly = isReadOnly
            configuration.busyTimeout = Self.busyTimeout
            // The connections read a few rows, and write one.
            configuration.cacheKiB = 256
            let opened = try Store(path: path, configuration: configuration)
            store = opened
            return try body(opened)
        }
    }
}
