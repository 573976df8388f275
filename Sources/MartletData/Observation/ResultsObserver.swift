import Synchronization

/// The results of a fetch, kept up to date with changes by the context, saved or not, by other contexts, other
/// processes, and sync.
///
/// Must be used where its context is used. A change announces that ``results`` change, on the thread that made or
/// noticed it; the fetch happens when they are next read. So results that nobody reads aren't fetched, and any number
/// of changes cost one fetch. Observe ``results`` or ``sections`` as in any observable object, or iterate ``changes``.
/// Changes of the store's file wake it, without polling; it leaves neither thread nor file open when released.
public final class ResultsObserver<Element: PersistentModel, SectionTitle: Hashable & SendableMetatype>: Observable {
    public let modelContext: ModelContext
    let signal: ResultsSignal
    let grouping: ResultsGrouping<Element, SectionTitle>?
    private let announcer = Announcer()
    private var subscription: StoreChangeHub.Subscription?
    private var isFetching = false
    private var found: [Element] = []
    private var foundResults = FetchResultsCollection<Element>([])
    private var foundSections: SectionedResults<Element, SectionTitle>?

    /// The fetch. Setting it announces a change, and takes effect when the results are next read.
    public var fetchDescriptor: FetchDescriptor<Element> {
        didSet { signal.changed() }
    }

    public var filterBy: Predicate<Element>? {
        get { fetchDescriptor.predicate }
        set { fetchDescriptor.predicate = newValue }
    }

    /// The sort order, applied within the sections if there are any.
    public var sortBy: [SortDescriptor<Element>] {
        get { fetchDescriptor.sortBy }
        set { fetchDescriptor.sortBy = newValue }
    }

    /// The property by which the results are grouped.
    public var sectionBy: PartialKeyPath<Element>? { grouping?.keyPath }

    /// The error of the last fetch; the results are then those of the previous one. Nil once a fetch succeeds. Not in
    /// SwiftData.
    public private(set) var fetchError: (any Error)?

    init(
        _ fetchDescriptor: FetchDescriptor<Element>, _ grouping: ResultsGrouping<Element, SectionTitle>?,
        _ modelContext: ModelContext
    ) throws {
        self.fetchDescriptor = fetchDescriptor
        self.grouping = grouping
        self.modelContext = modelContext
        signal = ResultsSignal()
        // Watch first, then fetch, so that commits in between are noticed.
        let unit = modelContext.container.unit(of: try modelContext.container.entity(Element.self))
        subscription = try unit.changes.add { [signal] _ in signal.changed() }
        signal.announces { [announcer] in announcer.announce() }
        modelContext.observers.add(self) { [weak self] in
            guard let self, !self.isFetching else { return }
            self.signal.changed()
        }
        try fetch()
    }

    deinit {
        modelContext.observers.remove(ObjectIdentifier(self))
        signal.finish()
    }

    /// A stand-in for the observer that can be observed from any thread. The code that announces a commit must not
    /// retain the observer: it might release it last, and with it the context, which may only be used on its own
    /// thread.
    private final class Announcer: Observable, Sendable {
        private let registrar = ObservationRegistrar()
        private var results: Void { () }
        private var sections: Void { () }

        func accessResults() { registrar.access(self, keyPath: \.results) }
        func accessSections() { registrar.access(self, keyPath: \.sections) }

        func announce() {
            registrar.withMutation(of: self, keyPath: \.results) {}
            registrar.withMutation(of: self, keyPath: \.sections) {}
        }
    }

    /// The models that match now. Fetches them if something has changed since the last access.
    public var results: FetchResultsCollection<Element> {
        announcer.accessResults()
        fetchAgain()
        return foundResults
    }

    /// The results in groups, in the order of their titles. Nil if they aren't grouped.
    public var sections: SectionedResults<Element, SectionTitle>? {
        announcer.accessSections()
        fetchAgain()
        return foundSections
    }

    /// An element each time that the results have changed since they were last read. Not in SwiftData.
    ///
    /// Buffers one element for a slow reader. Ends with the observer, which it doesn't keep alive, or with the task
    /// that reads it.
    public var changes: AsyncStream<Void> { signal.stream() }

    private func fetchAgain() {
        guard signal.isStale, !isFetching else { return }
        do {
            try fetch()
            fetchError = nil
        } catch {
            fetchError = error
        }
    }

    private func fetch() throws {
        isFetching = true
        defer { isFetching = false }
        // Set before the fetch: a change during it makes the results stale again.
        signal.fetched()
        var descriptor = fetchDescriptor
        if let grouping { descriptor.sortBy.insert(contentsOf: grouping.order, at: 0) }
        found = try modelContext.fetch(descriptor)
        foundResults = FetchResultsCollection(found)
        foundSections = grouping.map { SectionedResults(found, by: $0.title) }
    }

    /// The model at a section and a position in it.
    public func element(at indexPath: IndexPath) -> Element? {
        guard let sections, indexPath.count == 2, sections.indices.contains(indexPath[0]),
            sections[indexPath[0]].indices.contains(indexPath[1])
        else { return nil }
        return sections[indexPath[0]][indexPath[1]]
    }

    /// The section of a model, and its position there. Nil if it isn't among the results, or they aren't grouped.
    public func indexPath(for element: Element) -> IndexPath? {
        guard let sections else { return nil }
        for (number, section) in sections.enumerated() {
            if let position = section.firstIndex(where: { $0 === element }) { return [number, position] }
        }
        return nil
    }
}

extension ResultsObserver: CustomDebugStringConvertible {
    public var debugDescription: String { "ResultsObserver of \(Element.self): \(foundResults.count) results" }
}
