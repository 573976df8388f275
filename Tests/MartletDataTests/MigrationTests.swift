import Foundation
import SwiftData
import Testing

enum NotesV1: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model
    class Note {
        var start_date: Date
        var text: String
        init(start_date: Date, text: String) {
            self.start_date = start_date
            self.text = text
        }
    }
}

enum NotesV2: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
    static var models: [any PersistentModel.Type] { [Note.self, LongNote.self, Tag.self] }

    @Model
    class Note {
        #Index<Note>([\.startDate])
        @Attribute(originalName: "start_date") var startDate: Date
        var text: String
        var stars: Int = 3
        var remark: String?
        var tag: Tag?
        init(startDate: Date, text: String) {
            self.startDate = startDate
            self.text = text
        }
    }

    @available(iOS 26, *)
    @Model
    class LongNote: Note {
        var pages: Int = 1
        init(startDate: Date, text: String, pages: Int) {
            self.pages = pages
            super.init(startDate: startDate, text: text)
        }
    }

    @Model
    class Tag {
        var name: String
        var notes: [Note] = []
        init(name: String) { self.name = name }
    }
}

enum NotesV3: VersionedSchema {
    static var versionIdentifier: Schema.Version { Schema.Version(3, 0, 0) }
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model
    class Note {
        var start_date: Date
        var text: String
        var author: String
        init(start_date: Date, text: String, author: String) {
            self.start_date = start_date
            self.text = text
            self.author = author
        }
    }
}

enum NotesPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
    static var stages: [MigrationStage] {
        [.lightweight(fromVersion: NotesV1.self, toVersion: NotesV2.self)]
    }
}

enum NotesCustomPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
    static let migrateV1toV2 = MigrationStage.custom(
        fromVersion: NotesV1.self,
        toVersion: NotesV2.self,
        willMigrate: { context in
            var fetchDesc = FetchDescriptor<NotesV1.Note>()
            fetchDesc.propertiesToFetch = [\.text]
            let notes = try? context.fetch(fetchDesc)
            for note in (notes ?? []).dropFirst() { context.delete(note) }
            try? context.save()
        },
        didMigrate: nil
    )
    static var stages: [MigrationStage] { [migrateV1toV2] }
}

struct MigrationTests {
    private func withOldStore(_ body: (ModelConfiguration) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let configuration = ModelConfiguration(url: folder.appending(path: "a.store"))
            do {
                let container = try ModelContainer(
                    for: Schema(versionedSchema: NotesV1.self), configurations: configuration)
                let context = ModelContext(container)
                context.insert(NotesV1.Note(start_date: .day(4), text: "Milk"))
                try context.save()
            }
            try body(configuration)
        }
    }

    @Test func lightweightStageKeepsRowsAndHistory() throws {
        try withOldStore { configuration in
            let container = try ModelContainer(
                for: Schema(versionedSchema: NotesV2.self), migrationPlan: NotesPlan.self,
                configurations: configuration)
            let context = ModelContext(container)
            let note = try #require(try context.fetch(FetchDescriptor<NotesV2.Note>()).first)
            #expect(note.startDate == .day(4))
            #expect(note.text == "Milk")
            #expect(note.stars == 3)
            #expect(note.remark == nil)
            let before = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
            #expect(before.flatMap(\.changes).map(\.changedPersistentIdentifier) == [note.persistentModelID])

            note.stars = 5
            note.tag = NotesV2.Tag(name: "home")
            let long = NotesV2.LongNote(startDate: .day(5), text: "Novel", pages: 300)
            context.insert(long)
            try context.save()
            let last = try #require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last)
            #expect(last.changes.count == 3)
            let updates = last.changes.compactMap { change -> DefaultHistoryUpdate<NotesV2.Note>? in
                guard case .update(let update as DefaultHistoryUpdate<NotesV2.Note>) = change else { return nil }
                return update
            }
            #expect(updates.first?.updatedAttributes.contains(\.stars) == true)
            let other = ModelContext(container)
            #expect(try other.fetch(FetchDescriptor<NotesV2.LongNote>()).map(\.text) == ["Novel"])
            #expect(try other.fetchCount(FetchDescriptor<NotesV2.Note>()) == 2)
        }
    }

    @Test func missingDefaultIsRefusedAndTheStoreStaysAsItWas() throws {
        try withOldStore { configuration in
            #expect(throws: SwiftDataError.missingMigration) {
                try ModelContainer(for: Schema(versionedSchema: NotesV3.self), configurations: configuration)
            }
            let container = try ModelContainer(
                for: Schema(versionedSchema: NotesV1.self), configurations: configuration)
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<NotesV1.Note>()) == 1)
        }
    }

    @Test func talksCustomStageRunsBeforeTheTablesChange() throws {
        try withOldStore { configuration in
            do {
                let container = try ModelContainer(
                    for: Schema(versionedSchema: NotesV1.self), configurations: configuration)
                let context = ModelContext(container)
                context.insert(NotesV1.Note(start_date: .day(5), text: "Eggs"))
                try context.save()
            }
            let container = try ModelContainer(
                for: Schema(versionedSchema: NotesV2.self), migrationPlan: NotesCustomPlan.self,
                configurations: configuration)
            let context = ModelContext(container)
            #expect(try context.fetch(FetchDescriptor<NotesV2.Note>()).map(\.text) == ["Milk"])
        }
    }

    @Test func migratedStoreIsRefusedByTheOldApp() throws {
        try withOldStore { configuration in
            _ = try ModelContainer(for: Schema(versionedSchema: NotesV2.self), configurations: configuration)
            #expect(throws: SwiftDataError.incompatibleStore) {
                try ModelContainer(for: Schema(versionedSchema: NotesV1.self), configurations: configuration)
            }
        }
    }
}
