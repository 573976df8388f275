import MartletStore
import Synchronization

/// Counts new transactions in a container's stores: those of other contexts, other processes, and sync.
///
/// Observe ``eventCounter``, or iterate ``events``, and fetch the history after your own token. May be used from any
/// thread. Changes of the store's file wake it, without polling; it leaves neither thread nor file open when released.
/// Custom stores aren't observed: only they know what their histories contain.
public final class HistoryObserver: Observable, Sendable {
    public let modelContainer: ModelContainer
    /// The models to observe. Only transactions that change one of them, or a subclass, count. Empty: all transactions.
    public let observedModels: [any PersistentModel.Type]
    /// The authors to observe. Only transactions of one of them count. Empty: all, including those without an author.
    public let authors: Set<String>

    private struct State {
        /// Indexed like ``units``.
        var tokens: [MartletStore.HistoryToken?]
        var counter = 0
        var streams: [Int: AsyncStream<Int>.Continuation] = [:]
        var next = 0
    }

    private let units: [TableUnit]
    private let state: Mutex<State>
    /// Serializes checks of the history, so that no transaction counts twice.
    private let looking = Mutex(())
    private let registrar = ObservationRegistrar()
    private let subscriptions = Mutex<[StoreChangeHub.Subscription]>([])

    /// - Parameters:
    ///   - historyTokens: where to start, by store identifier; stores without a token start at their beginning. Nil:
    ///     now.
    ///   - observedModels: see ``observedModels``.
    ///   - authors: see ``authors``.
    ///   - isolation: accepted, without effect: the observer may be used anywhere.
    /// - Throws: `StoreError` if the history can't be read or the file can't be watched;
    ///   ``SwiftDataError/invalidSchema`` for a model that isn't in the container;
    ///   ``SwiftDataError/invalidTransactionFetchRequest`` for a model in a custom store, and if the container has only
    ///   custom stores; ``SwiftDataError/historyTokenExpired`` for a token of another store;
    ///   ``SwiftDataError/configuration`` in a stage of a migration.
    public init(
        historyTokens: [String: any HistoryToken]? = nil, observedModels: [any PersistentModel.Type] = [],
        authors: Set<String> = [], modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        self.modelContainer = modelContainer
        self.observedModels = observedModels
        self.authors = authors
        let units = modelContainer.units.compactMap(\.tables)
        self.units = units
        guard !units.contains(where: \.access.isMigrating) else {
            throw SwiftDataError.configuration.because(
                "A store can't be observed during a migration. Observe the container that is opened afterwards.")
        }
        for model in observedModels {
            let entity = try modelContainer.entity(model)
            guard modelContainer.unit(of: entity).tables == nil else { continue }
            throw SwiftDataError.invalidTransactionFetchRequest.because(
                "\(entity.name) is in a custom store, whose history can't be observed. Use a ResultsObserver."
            )
        }
        guard !units.isEmpty else {
            throw SwiftDataError.invalidTransactionFetchRequest.because(
                "The container has only custom stores, whose history can't be observed. Use a ResultsObserver.")
        }
        let given = units.map { (historyTokens?[$0.identifier] as? DefaultHistoryToken)?.token }
        if let historyTokens, given.compactMap({ $0 }).count != historyTokens.count {
            throw SwiftDataError.historyTokenExpired.because("A token belongs to none of the container's stores.")
        }
        state = Mutex(State(tokens: given))
        let subscriptions = try units.enumerated().map { index, unit in
            try unit.changes.add { [weak self, isWatching = unit.changes.isWatching] source in
                guard source == .commit || !isWatching else { return }
                self?.look([index])
            }
        }
        self.subscriptions.withLock { $0 = subscriptions }
        if historyTokens == nil {
            for (index, unit) in units.enumerated() {
                let newest = try unit.store.lastToken()
                state.withLock { $0.tokens[index] = newest }
            }
        } else {
            // Transactions after the tokens count at once.
            look(Array(units.indices))
        }
    }

    deinit {
        for stream in state.withLock({ Array($0.streams.values) }) { stream.finish() }
    }

    /// Increases by one each time that transactions to be counted were found, however many there were.
    public var eventCounter: Int {
        registrar.access(self, keyPath: \.eventCounter)
        return state.withLock { $0.counter }
    }

    /// The positions up to which the history was checked, by store identifier.
    public var historyTokens: [String: any HistoryToken] {
        let tokens = state.withLock { $0.tokens.compactMap { $0 } }
        return Dictionary(uniqueKeysWithValues: tokens.map { ($0.store.uuidString, DefaultHistoryToken($0)) })
    }

    /// The values of ``eventCounter`` from now on. Not in SwiftData.
    ///
    /// Buffers one value for a slow reader: the newest. Ends with the observer, which it doesn't keep alive, or with
    /// the task that reads it.
    public var events: AsyncStream<Int> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = state.withLock { state in
                state.next += 1
                state.streams[state.next] = continuation
                return state.next
            }
            continuation.onTermination = { [weak self] _ in
                self?.state.withLock { $0.streams[number] = nil }
            }
        }
    }

    private func look(_ units: [Int]) {
        let found = looking.withLock { _ in units.filter(hasNews) }
        guard !found.isEmpty else { return }
        registrar.withMutation(of: self, keyPath: \.eventCounter) {
            let (counter, streams) = state.withLock { state in
                state.counter += 1
                return (state.counter, Array(state.streams.values))
            }
            for stream in streams { stream.yield(counter) }
        }
    }

    /// Returns true if there are transactions that count, or if that is unknown because they were deleted.
    private func hasNews(_ index: Int) -> Bool {
        let unit = units[index]
        let store = unit.store
        do {
            guard let newest = try store.lastToken() else { return false }
            var query = HistoryQuery(after: state.withLock { $0.tokens[index] })
            guard query.after.map({ $0 < newest }) ?? true else { return false }
            query.through = newest
            query.limit = 1
            let found = try store.fetchHistory(query, readsChanges: false) { clause($0, unit) }
            state.withLock { $0.tokens[index] = newest }
            return !found.isEmpty
        } catch let error as StoreError where error.code == .historyTokenExpired {
            guard let newest = try? store.lastToken() else { return false }
            state.withLock { $0.tokens[index] = newest }
            return true
        } catch {
            // Busy, or gone: the next commit checks again, from the same token.
            return false
        }
    }

    private func clause(_ names: HistoryNames, _ unit: TableUnit) -> HistoryClause {
        let scope = HistoryScope(names, unit, of: modelContainer)
        var conditions: [SQLText] = []
        func list(_ values: some Sequence<String>) -> SQLText {
            let texts = values.sorted()
            return SQLText(texts.map { _ in "?" }.joined(separator: ", "), texts.map { .text($0) })
        }
        if !authors.isEmpty { conditions.append(.format("\(names.author) IN (@)", list(authors))) }
        if !observedModels.isEmpty {
            let entities = Set(observedModels.flatMap { unit.layout[$0]?.family.map(\.name) ?? [] })
            conditions.append(
                .format(
                    "EXISTS (SELECT 1 \(scope.changes(as: "c")) AND \(scope.entityName("c")) IN (@))", list(entities)))
        }
        guard !conditions.isEmpty else { return HistoryClause() }
        let text = SQLText.joined(conditions, " AND ")
        return HistoryClause(condition: text.sql, arguments: text.arguments)
    }
}
