package import GRDB
package import MartletWire

// Hands each repository the owners that it works with, and no others. The repositories don't know of the context.

extension PendingRows {
    package init(db: Database, context: ReplicaContext) {
        self.init(db, context.tables, context.pendingRows)
    }
}

extension DeferredChanges {
    package static func contains(_ db: Database, _ context: ReplicaContext, _ payload: [UInt8]) throws -> Bool {
        try contains(db, context.statement, payload)
    }
}

extension DeadLetters {
    package init(_ db: Database, _ context: ReplicaContext) {
        self.init(db, context.statement, context.quarantined)
    }
}

extension QuarantineSpace {
    package init(_ db: Database, _ context: ReplicaContext, _ limits: SecurityConfiguration, topic: String) {
        self.init(DeadLetters(db, context), limits, topic: topic, now: context.now)
    }
}

extension Outbox {
    package init(_ db: Database, _ context: ReplicaContext) throws {
        try self.init(
            db, context.statement, context.meta, context.notes, node: context.node, nodeName: context.nodeName)
    }
}

extension UnseenStamps {
    /// - Parameter sequence: the first that is lacking.
    package init(_ db: Database, _ context: ReplicaContext, from sequence: Int64) throws {
        try self.init(db, of: context.node, from: sequence)
    }
}

extension Chunks {
    package convenience init(_ db: Database, _ context: ReplicaContext) {
        self.init(db, context.statement, context.chunks)
    }
}

extension ReadProgress {
    package static func offset(
        _ db: Database, _ context: ReplicaContext, _ topic: String, _ partition: Int32
    ) throws -> ReadPositions.Offset {
        try offset(db, context.positions, topic, partition)
    }

    package static func noteOffset(
        _ context: ReplicaContext, _ topic: String, _ partition: Int32, _ offset: ReadPositions.Offset
    ) {
        noteOffset(context.notes, context.positions, topic, partition, offset)
    }

    package static func applied(_ db: Database, _ context: ReplicaContext, _ node: Int64) throws -> Int64? {
        try applied(db, context.positions, node)
    }

    package static func noteOrigin(_ context: ReplicaContext, _ node: Int64, at time: Int64) {
        noteOrigin(context.notes, context.positions, node, at: time)
    }
}

extension SequenceGaps {
    package static func contains(
        _ db: Database, _ context: ReplicaContext, node: Int64, _ sequence: Int64
    ) throws -> Bool {
        try contains(db, context.statement, node: node, sequence)
    }
}

extension OwnCount {
    package static func noteRead(
        _ db: Database, _ context: ReplicaContext, _ sequence: Int64, after confirmed: Int64
    ) throws {
        try noteRead(db, context.meta, sequence, after: confirmed)
    }

    package static func noteHole(_ db: Database, _ context: ReplicaContext) throws {
        try noteHole(db, context.meta)
    }
}

extension Members {
    package static func noteDelivered(
        _ db: Database, _ context: ReplicaContext, to node: Int64, _ sequence: Int64
    ) throws {
        try noteDelivered(db, context.meta, to: node, sequence)
    }
}
