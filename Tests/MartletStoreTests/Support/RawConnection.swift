import GRDB
import MartletStore
import MartletTestSupport

extension TemporaryStore {
    /// A connection like that of a program that doesn't know Martlet, with SQLite's default settings.
    func rawConnection(recursiveTriggers: Bool = false, timeout: Double = 20) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .timeout(timeout)
        if recursiveTriggers {
            configuration.prepareDatabase { try $0.execute(sql: "PRAGMA recursive_triggers = ON") }
        }
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Runs SQL in one transaction of such a connection.
    func raw(_ sql: String, recursiveTriggers: Bool = false) throws {
        let connection = try rawConnection(recursiveTriggers: recursiveTriggers)
        defer { try? connection.close() }
        try connection.write { try $0.execute(sql: sql) }
    }

    /// Sets the times that the log records, in milliseconds since 1970.
    ///
    /// - Parameters:
    ///   - time: SQL, which may read `id`, the ID of the change.
    ///   - condition: which rows of the log get the time.
    func setTimes(_ time: String, where condition: String = "1") throws {
        try raw("UPDATE \(InternalName.log) SET t = \(time) WHERE \(condition)")
    }

    /// The result of a query, one line a row.
    func lines(_ sql: String) throws -> [String] {
        try store.database.read { db in
            try Row.fetchAll(db, sql: sql).map { row in row.databaseValues.map(\.description).joined(separator: "|") }
        }
    }
}
