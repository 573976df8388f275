/// The results of a fetch, read in batches on access.
///
/// The fetch determines the results and their order. Reading blocks while SQLite works. A model that was deleted since
/// appears as ``ModelContext/model(for:)`` returns it. Must be used where the context that fetched it is used.
public struct FetchResultsCollection<Element>: RandomAccessCollection {
    private let batches: Batches

    /// At most two batches are in memory, so that access across a border between batches doesn't read them repeatedly.
    private final class Batches {
        let count: Int
        let size: Int
        private let load: (Range<Int>) -> [Element]
        private var loaded: [(first: Int, elements: [Element])] = []

        init(count: Int, size: Int, load: @escaping (Range<Int>) -> [Element]) {
            self.count = count
            self.size = size
            self.load = load
        }

        func element(_ position: Int) -> Element {
            let first = position - position % size
            if let known = loaded.first(where: { $0.first == first }) { return known.elements[position - first] }
            if loaded.count > 1 { loaded.removeFirst() }
            let elements = load(first..<Swift.min(first + size, count))
            loaded.append((first, elements))
            return elements[position - first]
        }
    }

    /// - Parameters:
    ///   - size: zero or less means a single batch.
    ///   - load: must return as many elements as requested.
    init(count: Int, batchSize size: Int, load: @escaping (Range<Int>) -> [Element]) {
        batches = Batches(count: count, size: size > 0 ? size : Swift.max(1, count), load: load)
    }

    init(_ elements: [Element]) { self.init(count: elements.count, batchSize: 0) { Array(elements[$0]) } }

    public var startIndex: Int { 0 }
    public var endIndex: Int { batches.count }

    public subscript(position: Int) -> Element {
        precondition(indices.contains(position), "There is no result \(position).")
        return batches.element(position)
    }
}
