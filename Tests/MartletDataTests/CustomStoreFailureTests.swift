import Foundation
import SwiftData
import Synchronization
import Testing

/// A custom store that can't be read for a while.
final class CustomStoreFailureTests {
    private struct Unreachable: Error {}

    private let file = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString).json")

    deinit {
        try? FileManager.default.removeItem(at: file)
        JSONStore.failures.withLock { $0[file] = nil }
    }

    private func container() throws -> ModelContainer {
        try ModelContainer(
            for: Schema([Company.self, Project.self]), configurations: JSONStoreConfiguration(file: file))
    }

    /// - Parameter reads: the number of reads that succeed before one fails.
    private func failing<R>(
        after reads: Int = 0, _ error: any Error = Unreachable(), _ body: () throws -> R
    ) rethrows -> R {
        JSONStore.failures.withLock { $0[file] = (reads, error) }
        defer { JSONStore.failures.withLock { $0[file] = nil } }
        return try body()
    }

    /// A context on a store with two projects, both with the same member.
    private func twoProjects() throws -> ModelContext {
        let filling = ModelContext(try container())
        let ada = Employee(name: "Ada", company: Company(code: "c"))
        filling.insert(ada)
        for title in ["a", "b"] {
            let project = Project(title: title)
            filling.insert(project)
            project.members = [ada]
        }
        try filling.save()
        let context = ModelContext(try container())
        // Models are read one by one.
        context.author = "alone"
        return context
    }

    private func project(_ title: String, _ context: ModelContext) throws -> Project {
        let all = try context.fetch(FetchDescriptor<Project>(sortBy: [SortDescriptor(\.title)]))
        return try #require(all.first { $0.title == title })
    }

    private func projectsOfMembers() throws -> [[String]] {
        try ModelContext(container()).fetch(FetchDescriptor<Employee>()).map { $0.projects.map(\.title) }
    }

    @Test func aDeletionWhoseRulesCannotReadIsNotSaved() throws {
        let context = try twoProjects()
        context.delete(try project("a", context))
        failing { _ = #expect(throws: Unreachable.self) { try context.save() } }
        #expect(context.hasChanges)
        #expect(try projectsOfMembers() == [["a", "b"]])
        try context.save()
        #expect(try projectsOfMembers() == [["b"]])
    }

    /// The member can be read, and then its projects can't.
    @Test(arguments: [true, false]) func aDeletionWhoseRulesFailHalfwayIsNotSaved(isProcessed: Bool) throws {
        let context = try twoProjects()
        let project = try project("a", context)
        context.delete(project)
        if isProcessed {
            failing(after: 1) { context.processPendingChanges() }
            // The program may have looked at the projects that are left.
            #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
            context.rollback()
            context.delete(project)
        } else {
            failing(after: 1) { _ = #expect(throws: Unreachable.self) { try context.save() } }
        }
        #expect(try projectsOfMembers() == [["a", "b"]])
        try context.save()
        #expect(try projectsOfMembers() == [["b"]])
    }

    /// A view that has shown an empty list must learn that it was wrong.
    @Test func aRollbackAfterAFailedReadNotifiesObservers() throws {
        let context = try twoProjects()
        let ada = try #require(try context.fetch(FetchDescriptor<Employee>()).first)
        let isNotified = Mutex(false)
        failing {
            withObservationTracking {
                #expect(ada.projects.isEmpty)
            } onChange: {
                isNotified.withLock { $0 = true }
            }
        }
        context.rollback()
        #expect(isNotified.withLock { $0 })
        #expect(ada.projects.count == 2)
    }

    /// A predicate that reads other models must not take those for missing that it can't read.
    @Test func aPredicateThatCannotReadThrows() throws {
        let context = try twoProjects()
        let descriptor = FetchDescriptor<Employee>(predicate: #Predicate { $0.company?.code == "c" })
        failing(after: 1) { _ = #expect(throws: Unreachable.self) { try context.fetch(descriptor) } }
        #expect(try context.fetch(descriptor).map(\.name) == ["Ada"])
        context.insert(Company(code: "n"))
        try context.save()
    }

    @Test func aFailedPrefetchThrows() throws {
        let context = try twoProjects()
        var descriptor = FetchDescriptor<Employee>()
        descriptor.relationshipKeyPathsForPrefetching = [\.projects]
        failing(after: 1) { _ = #expect(throws: Unreachable.self) { try context.fetch(descriptor) } }
        #expect(try context.fetch(descriptor).first?.projects.count == 2)
        context.insert(Company(code: "n"))
        try context.save()
    }

    /// The store's errors may be of any type.
    @Test(arguments: [SwiftDataError.corruptValue, .configuration, .modelNotFound])
    func aGetterNotesEveryErrorOfTheStore(_ error: SwiftDataError) throws {
        let context = try twoProjects()
        let ada = try #require(try context.fetch(FetchDescriptor<Employee>()).first)
        failing(after: 0, error) { ada.name = "\(ada.projects.count)" }
        let thrown = #expect(throws: SwiftDataError.saveNotAllowed) { try context.save() }
        #expect(thrown?.underlyingError as? SwiftDataError == error)
        context.rollback()
        #expect(ada.name == "Ada")
    }
}
