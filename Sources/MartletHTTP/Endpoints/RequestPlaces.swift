import Synchronization

/// Bounds the number of requests that keep a connection for long. Some connections have to be left for probes and
/// metrics.
final class RequestPlaces: Sendable {
    /// The number of places for all of them together.
    static let most = HTTPLimits().maxConnections * 3 / 4

    private let most: Int
    private let count = Mutex(0)

    init(most: Int = RequestPlaces.most) { self.most = most }

    /// Returns a place, nil if all are taken.
    func take() -> Place? {
        let isFree = count.withLock { count in
            guard count < most else { return false }
            count += 1
            return true
        }
        return isFree ? Place(self) : nil
    }

    /// A place that is free again when its owner lets go of it.
    final class Place: Sendable {
        private let places: RequestPlaces

        fileprivate init(_ places: RequestPlaces) { self.places = places }

        deinit { places.count.withLock { $0 -= 1 } }
    }
}
