import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import SwiftData
import Synchronization
import Testing

/// One after the other: they count the threads and files of the process.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ObserverTests {
    private func withStore<R>(_ body: (ModelContainer, URL) async throws -> R) async throws -> R {
        let folder = FileManager.default.temporaryDirectory.appending(path: "models-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appending(path: "c.store")
        return try await body(try companyContainer(.init(url: url)), url)
    }

    private func save(_ models: any PersistentModel..., author: String? = nil, in container: ModelContainer) throws {
        let context = ModelContext(container)
        context.author = author
        for model in models {
            func open<M: PersistentModel>(_ model: M) { context.insert(model) }
            open(model)
        }
        try context.save()
    }

    /// Runs SQL in a process of its own, which knows nothing of Martlet.
    private func elsewhere(_ sql: String, _ url: URL) throws {
        _ = try ForeignProgram.python.run(sql, on: url.path)
    }

    /// The next value. The suite's time limit ends a wait in vain.
    private func first<Value>(_ stream: AsyncStream<Value>) async -> Value? {
        for await value in stream { return value }
        return nil
    }

    // MARK: History

    @Test func historyObserverCountsWhatOtherContextsSave() async throws {
        try await withStore { container, _ in
            try save(Employee(name: "before"), in: container)
            let observer = try HistoryObserver(modelContainer: container)
            #expect(observer.eventCounter == 0)
            let events = observer.events
            try save(Employee(name: "Ada"), in: container)
            #expect(await first(events) == 1)
            #expect(observer.eventCounter == 1)
            let token = try #require(observer.historyTokens.values.first as? DefaultHistoryToken)
            let last = try ModelContext(container).fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last
            #expect(last?.token == token)
        }
    }

    @Test func historyObserverIsWokenByAnotherProcess() async throws {
        try await withStore { container, url in
            let observer = try HistoryObserver(observedModels: [Employee.self], modelContainer: container)
            let events = observer.events
            try elsewhere("INSERT INTO Employee(name, age) VALUES ('Grace', 45)", url)
            #expect(await first(events) == 1)
            let last = try ModelContext(container).fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last
            #expect(last?.changes.count == 1)
            #expect(last?.processIdentifier == "")
        }
    }

    @Test func historyObserverIsWokenBySync() async throws {
        try await withStore { container, url in
            let observer = try HistoryObserver(authors: [TransactionAuthor.sync], modelContainer: container)
            let events = observer.events
            // As the applier does: a connection of its own, with the sync author.
            let store = try Store(path: url.path)
            try store.write(closingWith: TransactionMark(author: TransactionAuthor.sync)) { db in
                try db.execute(sql: "INSERT INTO Employee(name, age) VALUES ('Grace', 45)")
            }
            #expect(await first(events) == 1)
            try store.close()
        }
    }

    @Test func historyObserverLeavesOutOtherModelsAndAuthors() async throws {
        try await withStore { container, _ in
            let badges = try HistoryObserver(observedModels: [Badge.self], modelContainer: container)
            let widgets = try HistoryObserver(authors: ["widget"], modelContainer: container)
            let both = try HistoryObserver(
                observedModels: [Badge.self], authors: ["widget"], modelContainer: container)
            let (events, badgeEvents, widgetEvents) = (both.events, badges.events, widgets.events)
            try save(Employee(name: "Ada"), author: "app", in: container)
            try save(Badge(number: 1), in: container)
            try save(Employee(name: "Bob"), author: "widget", in: container)
            try save(Badge(number: 2), author: "widget", in: container)
            #expect(await first(events) == 1)
            #expect(both.eventCounter == 1)
            #expect(await first(badgeEvents) != nil)
            #expect(await first(widgetEvents) != nil)
            #expect(badges.eventCounter >= 1 && badges.eventCounter <= 2)
            #expect(widgets.eventCounter >= 1 && widgets.eventCounter <= 2)
        }
    }

    @Test func historyObserverTellsSubclassesApart() async throws {
        let container = try tripContainer()
        let business = try HistoryObserver(observedModels: [BusinessTrip.self], modelContainer: container)
        let trips = try HistoryObserver(observedModels: [Trip.self], modelContainer: container)
        let context = ModelContext(container)
        context.insert(PersonalTrip(name: "p", reason: .family))
        try context.save()
        #expect(business.eventCounter == 0)
        #expect(trips.eventCounter == 1)
        context.insert(BusinessTrip(name: "b", perdiem: 1))
        try context.save()
        #expect(business.eventCounter == 1)
        #expect(trips.eventCounter == 2)
    }

    @Test func historyObserverBeginsAtAToken() async throws {
        try await withStore { container, _ in
            let first = try HistoryObserver(modelContainer: container)
            try save(Employee(name: "Ada"), in: container)
            let tokens = first.historyTokens
            try save(Employee(name: "Bob"), in: container)
            let context = ModelContext(container)
            let last = try #require(
                try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token)
            #expect(try HistoryObserver(historyTokens: tokens, modelContainer: container).eventCounter == 1)
            let ended = try HistoryObserver(
                historyTokens: [last.storeIdentifier: last], modelContainer: container)
            #expect(ended.eventCounter == 0)
            #expect(throws: SwiftDataError.historyTokenExpired) {
                try HistoryObserver(historyTokens: ["elsewhere": last], modelContainer: container)
            }
            #expect(throws: SwiftDataError.invalidSchema) {
                try HistoryObserver(observedModels: [Trip.self], modelContainer: container)
            }
        }
    }

    @Test func deletedHistoryCountsAsNews() async throws {
        try await withStore { container, _ in
            try save(Employee(name: "Ada"), in: container)
            let context = ModelContext(container)
            let token = try #require(
                try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).first?.token)
            for name in ["a", "b", "c"] { try save(Employee(name: name), in: container) }
            try context.deleteHistory(HistoryDescriptor<DefaultHistoryTransaction>())
            let observer = try HistoryObserver(
                historyTokens: [token.storeIdentifier: token], observedModels: [Badge.self], modelContainer: container)
            #expect(observer.eventCounter == 1)
        }
    }

    @Test func eventCounterIsObservable() async throws {
        try await withStore { container, url in
            let observer = try HistoryObserver(modelContainer: container)
            let (stream, signal) = AsyncStream<Void>.makeStream()
            withObservationTracking {
                _ = observer.eventCounter
            } onChange: {
                signal.yield()
            }
            try elsewhere("INSERT INTO Badge(number) VALUES (1)", url)
            #expect(await first(stream) != nil)
        }
    }

    @Test func remoteChangesArePosted() async throws {
        try await withStore { container, url in
            let observer = try HistoryObserver(modelContainer: container)
            let (stream, signal) = AsyncStream<Void>.makeStream()
            let token = NotificationCenter.default.addObserver(
                forName: ModelContainer.remoteChange, object: container, queue: nil
            ) { _ in signal.yield() }
            try elsewhere("INSERT INTO Badge(number) VALUES (1)", url)
            #expect(await first(stream) != nil)
            NotificationCenter.default.removeObserver(token)
            withExtendedLifetime(observer) {}
        }
    }

    @Test func slowReaderGetsTheNewestEvent() async throws {
        let container = try companyContainer()
        let observer = try HistoryObserver(modelContainer: container)
        let events = observer.events
        for number in 1...5 { try save(Badge(number: number), in: container) }
        #expect(observer.eventCounter == 5)
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == 5)
    }

    @Test func streamEndsWithItsObserverAndWithItsTask() async throws {
        let container = try companyContainer()
        var observer: HistoryObserver? = try HistoryObserver(modelContainer: container)
        let events = try #require(observer).events
        observer = nil
        for await _ in events { Issue.record("no event") }
        let other = try HistoryObserver(modelContainer: container)
        let stream = other.events
        let task = Task { for await _ in stream {} }
        task.cancel()
        await task.value
        try save(Badge(number: 1), in: container)
        #expect(other.eventCounter == 1)
    }

    // MARK: Results

    @Test func resultsFollowTheirOwnContext() throws {
        let context = ModelContext(try companyContainer())
        let adults = try ResultsObserver<Employee, Never>(
            filterBy: #Predicate { $0.age >= 18 }, sortBy: [SortDescriptor(\.name)], modelContext: context)
        let announced = Mutex(0)
        func track() {
            withObservationTracking {
                _ = adults.results
            } onChange: {
                announced.withLock { $0 += 1 }
            }
        }
        track()
        let ada = Employee(name: "Ada", age: 17)
        context.insert(ada)
        #expect(announced.withLock { $0 } == 1)
        track()
        #expect(adults.results.isEmpty)
        ada.age = 18
        #expect(announced.withLock { $0 } == 2)
        #expect(adults.results.map(\.name) == ["Ada"])
        // The same attribute again, before any save.
        ada.age = 3
        #expect(adults.results.isEmpty)
        ada.age = 40
        try context.save()
        #expect(adults.results.first === ada)
        context.delete(ada)
        #expect(adults.results.isEmpty)
        context.rollback()
        #expect(adults.results.count == 1)
        #expect(adults.sections == nil)
    }

    @Test func resultsFollowOtherContexts() throws {
        let container = try companyContainer()
        let context = ModelContext(container)
        let all = try ResultsObserver<Employee, Never>(modelContext: context)
        try save(Employee(name: "Ada"), in: container)
        #expect(all.results.map(\.name) == ["Ada"])
        let ada = all.results[0]
        let other = ModelContext(container)
        let same = try #require(try other.fetch(FetchDescriptor<Employee>()).first)
        same.name = "Grace"
        try other.save()
        #expect(all.results.map(\.name) == ["Grace"])
        #expect(ada.name == "Grace")
        other.delete(same)
        try other.save()
        #expect(all.results.isEmpty)
    }

    @Test func resultsFollowOtherProcesses() async throws {
        try await withStore { container, url in
            let all = try ResultsObserver<Employee, Never>(
                sortBy: [SortDescriptor(\.name)], modelContainer: container)
            #expect(all.results.isEmpty)
            let changes = all.changes
            try elsewhere("INSERT INTO Employee(name, age) VALUES ('Grace', 45)", url)
            #expect(await first(changes) != nil)
            #expect(all.results.map(\.name) == ["Grace"])
        }
    }

    @Test func resultsFollowSync() async throws {
        try await withStore { container, url in
            let all = try ResultsObserver<Employee, Never>(modelContainer: container)
            let changes = all.changes
            let store = try Store(path: url.path)
            try store.write(closingWith: TransactionMark(author: TransactionAuthor.sync)) { db in
                try db.execute(sql: "INSERT INTO Employee(name, age) VALUES ('Grace', 45)")
            }
            #expect(await first(changes) != nil)
            #expect(all.results.map(\.name) == ["Grace"])
            try store.close()
        }
    }

    @Test func resultsAreGroupedByAProperty() throws {
        let container = try companyContainer()
        try save(
            Employee(name: "Ada", nickname: "x"), Employee(name: "Bob"), Employee(name: "Cleo", nickname: "a"),
            Employee(name: "Dan", nickname: "x"), in: container)
        let grouped = try ResultsObserver<Employee, String>(
            sortBy: [SortDescriptor(\.name, order: .reverse)], sectionBy: \.nickname, modelContainer: container)
        let sections = try #require(grouped.sections)
        #expect(sections.sectionTitles == ["", "a", "x"])
        #expect(sections.map { $0.map(\.name) } == [["Bob"], ["Cleo"], ["Dan", "Ada"]])
        #expect(sections[sectionTitle: "x"]?.count == 2)
        #expect(sections.contains(sectionTitle: "a") && !sections.contains(sectionTitle: "b"))
        #expect(sections.index(ofSectionTitled: "x") == 2)
        #expect(grouped.results.map(\.name) == ["Bob", "Cleo", "Dan", "Ada"])
        let ada = try #require(grouped.element(at: [2, 1]))
        #expect(ada.name == "Ada")
        #expect(grouped.indexPath(for: ada) == [2, 1])
        #expect(grouped.element(at: [2, 2]) == nil && grouped.element(at: [3, 0]) == nil)
        ada.nickname = "a"
        #expect(grouped.sections?[sectionTitle: "a"]?.map(\.name) == ["Cleo", "Ada"])
        #expect(grouped.sectionBy == \Employee.nickname)
    }

    @Test func criteriaMayBeChanged() throws {
        let container = try companyContainer()
        try save(Employee(name: "Ada", age: 1), Employee(name: "Bob", age: 2), in: container)
        let all = try ResultsObserver<Employee, Never>(modelContainer: container)
        #expect(all.results.count == 2)
        all.filterBy = #Predicate { $0.age > 1 }
        #expect(all.results.map(\.name) == ["Bob"])
        all.filterBy = nil
        all.sortBy = [SortDescriptor(\.age, order: .reverse)]
        #expect(all.results.map(\.name) == ["Bob", "Ada"])
    }

    @Test func failingFetchKeepsTheResultsAndTells() throws {
        let container = try companyContainer()
        try save(Employee(name: "Ada"), in: container)
        let all = try ResultsObserver<Employee, Never>(modelContainer: container)
        all.sortBy = [SortDescriptor(\.note)]
        #expect(all.results.count == 1)
        #expect(all.fetchError as? SwiftDataError == .unsupportedSortDescriptor)
        all.sortBy = []
        #expect(all.results.count == 1)
        #expect(all.fetchError == nil)
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try ResultsObserver<Employee, Never>(sortBy: [SortDescriptor(\.note)], modelContainer: container)
        }
    }

    // MARK: Nothing is left

    /// What is open of a folder, and the inotify watches on it. A thread that watches holds its watch open as long as
    /// it lives.
    private func leftovers(_ folder: URL) -> (files: Int, watches: Int) {
        let files = FileManager.default
        func entries(_ path: String) -> [String] { (try? files.contentsOfDirectory(atPath: path)) ?? [] }
        func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
        let number = (try? files.attributesOfItem(atPath: folder.path)[.systemFileNumber] as? NSNumber)?.uint64Value
        let watch = "ino:\(String(number ?? 0, radix: 16)) "
        let descriptors = entries("/proc/self/fd")
        let open = descriptors.filter { file in
            (try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(file)"))?.hasPrefix(folder.path) == true
        }
        let watches = descriptors.filter { text("/proc/self/fdinfo/\($0)").contains(watch) }
        return (open.count, watches.count)
    }

    /// Waits until this is so.
    private func becomes(_ folder: URL, _ isSo: ((files: Int, watches: Int)) -> Bool) async -> Bool {
        (try? await eventually("no more of \(folder.path)", within: .seconds(60)) { isSo(leftovers(folder)) }) != nil
    }

    private func watch(_ url: URL, _ folder: URL) async throws {
        let container = try companyContainer(.init(url: url))
        let before = leftovers(folder)
        for round in 1...3 {
            var history: HistoryObserver? = try HistoryObserver(modelContainer: container)
            var results: ResultsObserver<Employee, Never>? = try ResultsObserver(modelContainer: container)
            let events = try #require(history).events
            let changes = try #require(results).changes
            try elsewhere("INSERT INTO Employee(name, age) VALUES ('Grace', 45)", url)
            #expect(await first(events) == 1)
            // The observers are told one after the other.
            while results?.results.count != round { _ = await first(changes) }
            // One watch for both.
            #expect(await becomes(folder) { $0.watches == 1 })
            history = nil
            #expect(await becomes(folder) { $0.watches == 1 })
            results = nil
            // SQLite keeps one descriptor for the next connection while the container's has the file locked.
            #expect(await becomes(folder) { $0.watches == 0 && $0.files <= before.files + 1 })
        }
    }

    @Test func observersLeaveNoThreadAndNoOpenFile() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "models-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await watch(folder.appending(path: "c.store"), folder)
        #expect(await becomes(folder) { $0 == (0, 0) })
    }
}
