package import GRDB

extension DatabaseQueue {
    /// Opens a file as another program does, which begins and ends its SQLite transactions with statements of its own.
    package static func ofAnotherProgram(_ path: String) throws -> DatabaseQueue {
        var options = Configuration()
        options.allowsUnsafeTransactions = true
        return try DatabaseQueue(path: path, configuration: options)
    }
}
