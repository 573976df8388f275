import Foundation
import GRDB
import MartletData

@Model
final class Folder {
    var name: String
    @Relationship(inverse: \Entry.folder) var entries: [Entry] = []

    init(name: String) { self.name = name }
}

@Model
final class Entry {
    #Index<Entry>([\.label])

    var title: String
    var note: String
    var weight: Double
    var label: Int
    var when: Date
    var folder: Folder?

    init(title: String, note: String, weight: Double, label: Int, when: Date, folder: Folder?) {
        self.title = title
        self.note = note
        self.weight = weight
        self.label = label
        self.when = when
        self.folder = folder
    }
}

/// The same rows in a program that uses GRDB.
struct FolderRecord: MutablePersistableRecord, FetchableRecord {
    static let databaseTableName = "Folder"
    static let entries = hasMany(EntryRecord.self, using: ForeignKey(["folder"], to: ["_id"]))

    var id: Int64?
    var name: String

    init(name: String) { self.name = name }

    init(row: Row) {
        id = row["_id"]
        name = row["name"]
    }

    func encode(to container: inout PersistenceContainer) {
        container["_id"] = id
        container["name"] = name
    }

    mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

struct EntryRecord: MutablePersistableRecord, FetchableRecord {
    static let databaseTableName = "Entry"
    static let folder = belongsTo(FolderRecord.self, using: ForeignKey(["folder"], to: ["_id"]))

    var id: Int64?
    var title: String
    var note: String
    var weight: Double
    var label: Int
    var when: Double
    var folder: Int64?

    init(_ row: SwiftRow, label: Int, when: Double, folder: Int64?) {
        title = row.title
        note = row.note
        weight = row.weight
        self.label = label
        self.when = when
        self.folder = folder
    }

    init(row: Row) {
        id = row["_id"]
        title = row["title"]
        note = row["note"]
        weight = row["weight"]
        label = row["label"]
        when = row["when"]
        folder = row["folder"]
    }

    func encode(to container: inout PersistenceContainer) {
        container["_id"] = id
        container["title"] = title
        container["note"] = note
        container["weight"] = weight
        container["label"] = label
        container["when"] = when
        container["folder"] = folder
    }

    mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

/// An entry with its folder, prefetched with GRDB.
struct FiledEntry: FetchableRecord {
    var entry: EntryRecord
    var folder: FolderRecord?

    init(row: Row) {
        entry = EntryRecord(row: row)
        folder = row[FiledEntry.scope].map(FolderRecord.init(row:))
    }

    static let scope = "folder"
}

private extension Row {
    subscript(scope: String) -> Row? { scopes[scope] }
}
