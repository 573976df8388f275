import Foundation
import GRDB

// Decoders are internal to the package. Debug builds make them accessible to the package of the fuzzer.
@testable import MartletEngine
@testable import MartletStore

/// A store that is recreated regularly, so that it stays small.
final class FuzzedStore {
    private(set) var engine: SyncEngine
    private let folder: URL
    private let lifetime: Int
    private var uses = 0

    /// - Parameter lifetime: the number of uses after which the store is recreated.
    init(lifetime: Int) throws {
        self.lifetime = lifetime
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("martlet-fuzz-\(UUID().uuidString)")
        engine = try Self.makeEngine(folder)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// - Returns: the engine of the store, a fresh one after ``lifetime`` uses.
    func use() throws -> SyncEngine {
        uses += 1
        guard uses > lifetime else { return engine }
        uses = 0
        try engine.close()
        engine = try Self.makeEngine(folder)
        return engine
    }

    private static func makeEngine(_ folder: URL) throws -> SyncEngine {
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let store = try Store.create(path: folder.appendingPathComponent("s.sqlite").path)
        try store.write {
            try $0.execute(
                sql: """
                    CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, budget REAL);
                    CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER NOT NULL REFERENCES trip(id), place TEXT);
                    CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
                    """)
        }
        _ = try store.attach()
        try store.close()
        return try SyncEngine(path: store.path)
    }
}
