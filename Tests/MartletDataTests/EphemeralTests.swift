import Foundation
import GRDB
import MartletStore
import SwiftData
import Synchronization
import Testing

@Model
final class Draft {
    var title: String
    @Attribute(.ephemeral) var cursor: Int = 3
    @Attribute(.ephemeral) var selection: String?
    init(title: String) { self.title = title }
}

@Model
final class DraftWithoutDefault {
    @Attribute(.ephemeral) var cursor: Int
    init(cursor: Int) { self.cursor = cursor }
}

/// Attributes that are kept only in memory.
struct EphemeralTests {
    let container: ModelContainer
    let context: ModelContext
    let draft = Draft(title: "a")

    init() throws {
        container = try ModelContainer(for: Draft.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
        draft.cursor = 7
        context.insert(draft)
        try context.save()
    }

    @Test func ephemeralAttributesHaveNoColumn() throws {
        let columns = try container.store.database.read { try $0.columns(in: "Draft").map(\.name) }
        #expect(columns == ["_id", "title"])
    }

    @Test func ephemeralValuesStayWithTheObject() throws {
        #expect(draft.cursor == 7)
        let other = ModelContext(container)
        let same = try #require(try other.fetch(FetchDescriptor<Draft>()).first)
        #expect(same.cursor == 3)
        #expect(same.selection == nil)
        same.title = "b"
        try other.save()
        _ = try context.fetch(FetchDescriptor<Draft>())
        #expect(draft.title == "b")
        #expect(draft.cursor == 7)
    }

    @Test func ephemeralValuesAreObservedAndCountAsChanges() throws {
        let isTold = Mutex(false)
        withObservationTracking {
            _ = draft.cursor
        } onChange: {
            isTold.withLock { $0 = true }
        }
        draft.cursor = 8
        #expect(isTold.withLock { $0 })
        #expect(draft.hasChanges)
        #expect(context.hasChanges)
        let before = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count
        try context.save()
        #expect(!draft.hasChanges)
        #expect(draft.cursor == 8)
        #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count == before)
        draft.cursor = 9
        context.rollback()
        #expect(draft.cursor == 8)
    }

    @Test func predicatesAndSortDescriptorsRefuseEphemeralAttributes() {
        #expect(throws: SwiftDataError.unsupportedPredicate) {
            try context.fetch(FetchDescriptor<Draft>(predicate: #Predicate { $0.cursor == 7 }))
        }
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try context.fetch(FetchDescriptor<Draft>(sortBy: [SortDescriptor(\.cursor)]))
        }
        #expect(throws: SwiftDataError.invalidSchema) {
            try ModelContainer(
                for: DraftWithoutDefault.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        }
    }

    @Test func customStoresDoNotReceiveEphemeralAttributes() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "d-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let container = try ModelContainer(for: Draft.self, configurations: JSONStoreConfiguration(file: file))
        let context = ModelContext(container)
        let draft = Draft(title: "a")
        draft.cursor = 7
        context.insert(draft)
        try context.save()
        #expect(draft.cursor == 7)
        #expect(try !String(contentsOf: file, encoding: .utf8).contains("cursor"))
        #expect(try ModelContext(container).fetch(FetchDescriptor<Draft>()).map(\.cursor) == [3])
    }
}
