import Foundation
import SwiftData
import Synchronization

// A store that keeps its models in a JSON file, as an app would write it.

struct JSONStoreConfiguration: DataStoreConfiguration {
    typealias Store = JSONStore

    var name = "json"
    var schema: Schema?
    var file: URL

    struct NotJSON: Error {}

    func validate() throws {
        guard file.pathExtension == "json" else { throw NotJSON() }
    }
}

final class JSONStore: DataStore {
    typealias Configuration = JSONStoreConfiguration
    typealias Snapshot = DefaultSnapshot

    let configuration: JSONStoreConfiguration
    let schema: Schema
    let identifier: String

    struct NoSchema: Error {}
    struct DiskFull: Error {}

    /// What reading a file throws, after a number of successful reads.
    static let failures = Mutex<[URL: (readsLeft: Int, error: any Error)]>([:])

    init(_ configuration: JSONStoreConfiguration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
        guard let schema = configuration.schema else { throw NoSchema() }
        self.configuration = configuration
        self.schema = schema
        identifier = configuration.file.lastPathComponent
    }

    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws
        -> DataStoreFetchResult<T, DefaultSnapshot>
    {
        if request.descriptor.predicate != nil { throw DataStoreError.preferInMemoryFilter }
        if !request.descriptor.sortBy.isEmpty { throw DataStoreError.preferInMemorySort }
        let all = try read()
        // A test asks for models without related ones by its author.
        if request.editingState.author == "alone" {
            return DataStoreFetchResult(descriptor: request.descriptor, fetchedSnapshots: all)
        }
        return DataStoreFetchResult(
            descriptor: request.descriptor, fetchedSnapshots: all,
            relatedSnapshots: Dictionary(uniqueKeysWithValues: all.map { ($0.persistentIdentifier, $0) }))
    }

    func save(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) throws
        -> DataStoreSaveChangesResult<DefaultSnapshot>
    {
        // A test asks for a failure by its author.
        if request.editingState.author == "no room" { throw DiskFull() }
        var lasting: [PersistentIdentifier: PersistentIdentifier] = [:]
        for snapshot in request.inserted {
            lasting[snapshot.persistentIdentifier] = try .identifier(
                for: identifier, entityName: snapshot.persistentIdentifier.entityName, primaryKey: UUID())
        }
        var all = try read()
        let gone = Set(request.deleted.map(\.persistentIdentifier))
        all.removeAll { gone.contains($0.persistentIdentifier) }
        for snapshot in request.updated {
            guard let index = all.firstIndex(where: { $0.persistentIdentifier == snapshot.persistentIdentifier }) else {
                continue
            }
            all[index] = snapshot.copy(
                persistentIdentifier: snapshot.persistentIdentifier, remappedIdentifiers: lasting)
        }
        for snapshot in request.inserted {
            guard let identifier = lasting[snapshot.persistentIdentifier] else { continue }
            all.append(snapshot.copy(persistentIdentifier: identifier, remappedIdentifiers: lasting))
        }
        try write(all)
        return DataStoreSaveChangesResult(for: identifier, remappedIdentifiers: lasting)
    }

    func erase() throws { try write([]) }

    private func read() throws -> [DefaultSnapshot] {
        try Self.failures.withLock { failures in
            guard let failure = failures[configuration.file] else { return }
            guard failure.readsLeft > 0 else { throw failure.error }
            failures[configuration.file]?.readsLeft -= 1
        }
        guard FileManager.default.fileExists(atPath: configuration.file.path) else { return [] }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return try decoder.decode([DefaultSnapshot].self, from: Data(contentsOf: configuration.file))
    }

    private func write(_ all: [DefaultSnapshot]) throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try encoder.encode(all).write(to: configuration.file, options: .atomic)
    }
}
