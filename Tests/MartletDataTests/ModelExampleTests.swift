import Foundation
import SwiftData
import Testing

/// The code of docs/swift.md: the test of documents compares them.
@Suite struct ModelExampleTests {
    @Model class Trip {
        @Attribute(.unique, .preserveValueOnDeletion) var name: String
        var start: Date
        @Relationship(deleteRule: .cascade) var items: [Item] = []
        init(name: String, start: Date) {
            self.name = name
            self.start = start
        }
    }

    @Model class Item {
        var title: String
        init(title: String) { self.title = title }
    }

    @Test func aModelIsSavedAndFoundByAPredicate() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "trips.store")

        let container = try ModelContainer(for: Trip.self, configurations: ModelConfiguration(url: file))
        let context = ModelContext(container)
        context.author = "app"
        context.insert(Trip(name: "Alps", start: .now))
        try context.save()
        let soon = try context.fetch(FetchDescriptor<Trip>(predicate: #Predicate { $0.name.starts(with: "A") }))

        #expect(soon.map(\.name) == ["Alps"])
        #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).map(\.author) == ["app"])
    }
}
