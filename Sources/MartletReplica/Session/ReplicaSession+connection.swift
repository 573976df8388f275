package import GRDB
package import MartletCore

/// What the session's connection offers to callers of the session.
extension ReplicaSession {
    /// Path of the store's file.
    package var path: String { connection.path }
    package var database: DatabaseQueue { connection.database }
    /// This node's ID. ``adopt(_:)`` changes it.
    package var node: NodeID { connection.node }
    /// Wall clock, in milliseconds since 1970.
    package var now: @Sendable () -> Int64 { connection.now }
    /// Clock for intervals.
    package var instant: @Sendable () -> ContinuousClock.Instant { connection.instant }

    /// See ``WriterConnection/read(_:)``.
    package func read<T>(_ body: (Database) throws -> T) throws -> T { try connection.read(body) }

    /// See ``WriterConnection/write(_:)``.
    package func write<T>(_ body: (Database) throws -> T) throws -> T { try connection.write(body) }

    /// See ``WriterConnection/writeMeta(_:)``.
    package func writeMeta<T>(_ body: (Database) throws -> T) throws -> T { try connection.writeMeta(body) }

    package func mapErrors<T>(_ body: () throws -> T) throws -> T { try connection.mapErrors(body) }
}
