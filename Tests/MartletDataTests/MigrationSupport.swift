import Foundation
import GRDB
import MartletStore
import SwiftData
import Testing

/// A store in a folder of its own, which versions of models come and go on.
struct MigratedStore {
    let configuration: ModelConfiguration

    /// Runs `body` with a store of the first version that `fill` wrote to.
    static func with(
        _ version: any VersionedSchema.Type = BoxV1.self, fill: (ModelContext) throws -> Void,
        _ body: (MigratedStore) throws -> Void
    ) throws {
        try withTemporaryFolder { folder in
            let store = MigratedStore(configuration: ModelConfiguration(url: folder.appending(path: "a.store")))
            try store.use(version, nil, fill)
            try body(store)
        }
    }

    func open(
        _ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)? = nil
    ) throws -> ModelContainer {
        try ModelContainer(
            for: Schema(versionedSchema: version), migrationPlan: plan, configurations: configuration)
    }

    /// Opens the store, runs `body`, saves, and closes.
    func use(
        _ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)? = nil,
        _ body: (ModelContext) throws -> Void
    ) throws {
        let context = ModelContext(try open(version, plan))
        try body(context)
        try context.save()
    }

    /// Rows as text, read by a program that knows nothing of models.
    func lines(_ sql: String) throws -> [String] {
        let queue = try DatabaseQueue(path: configuration.url.path)
        defer { try? queue.close() }
        return try queue.read { db in
            try Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map { $0.isNull ? "NULL" : String.fromDatabaseValue($0) ?? $0.description }
                    .joined(separator: "|")
            }
        }
    }

    func run(_ sql: String) throws {
        let queue = try DatabaseQueue(path: configuration.url.path)
        defer { try? queue.close() }
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    }

    /// Everything that is in the store, its schema and Martlet's tables included.
    func dump() throws -> [String] {
        let tables = try lines(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%' ORDER BY name")
        return try lines("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
            + tables.flatMap { table in
                try lines("SELECT '\(table)', * FROM \"\(table)\" ORDER BY 1, 2, 3")
            }
    }

    /// Expects a migration to fail with a message that has these words, and the store to be as it was.
    @discardableResult
    func expectRefusal(
        _ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)?, _ error: SwiftDataError,
        _ words: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> SwiftDataError? {
        try expectRefusal(version, plan, error, words, sourceLocation)
    }

    func expectRefusal(
        _ version: any VersionedSchema.Type, _ error: SwiftDataError, _ words: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try expectRefusal(version, nil, error, words, sourceLocation)
    }

    @discardableResult
    private func expectRefusal(
        _ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)?, _ error: SwiftDataError,
        _ words: [String], _ sourceLocation: SourceLocation
    ) throws -> SwiftDataError? {
        let before = try dump()
        let thrown = #expect(throws: SwiftDataError.self, sourceLocation: sourceLocation) { try open(version, plan) }
        #expect(thrown == error, sourceLocation: sourceLocation)
        for word in words {
            #expect(
                thrown?.message.contains(word) == true, "\(thrown?.message ?? "") lacks \(word)",
                sourceLocation: sourceLocation)
        }
        #expect(try dump() == before, sourceLocation: sourceLocation)
        return thrown
    }
}

extension ModelContext {
    func history() throws -> [DefaultHistoryTransaction] {
        try fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
    }

    func all<T: PersistentModel>(_ type: T.Type) throws -> [T] { try fetch(FetchDescriptor<T>()) }
}
