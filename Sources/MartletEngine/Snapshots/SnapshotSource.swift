package import Foundation
package import MartletCore
package import MartletReplica
package import MartletWire

/// Where the consumer gets transactions that the topic dropped before this node read them.
///
/// Calls block, and come from the consumer's thread.
package protocol SnapshotSource: Sendable {
    /// Loads the newest snapshot that can be loaded. Resumes one that was begun before.
    ///
    /// - Parameters:
    ///   - needed: the offsets that a snapshot should cover. One that covers them is taken first, even if it was loaded
    ///     before: offsets may have gone back since.
    ///   - next: called after each applied part; returns whether to go on.
    /// - Returns: what was loaded; nil if there is no snapshot that was not loaded before.
    /// - Throws: ``/MartletBus/BusError`` when the connection is lost; another call resumes where it stopped.
    func load(
        needing needed: WantedOffsets, partitionCount: Int, next: (SnapshotProgress) -> Bool
    ) throws -> SnapshotProgress?

    /// Returns true if there is a snapshot that may have the missing transactions.
    func hasCandidate(needing needed: WantedOffsets, partitionCount: Int) throws -> Bool

    /// Returns the header of the newest complete snapshot that covers these offsets.
    func newestHeader(covering offsets: WantedOffsets, partitionCount: Int) throws -> WireSnapshotHeader?

    /// Notes that a snapshot's offsets belong to another log than the topic's current one.
    func noteStranger(_ id: UUID)

    /// Returns the last sequence of this node's own transactions in any snapshot. Nil if none has any.
    func lastOwnSequence() throws -> Int64?

    /// Returns the sequences of this node's own transactions that the maker of a snapshot had read from the topic. None
    /// if this node made the snapshot: then it has all of them, also those that were never on the topic or that the
    /// broker lost, and nodes that read the topic without a snapshot would never get them.
    func ownSequences(_ id: UUID) throws -> [ClosedRange<Int64>]
}

extension WireSnapshotHeader {
    /// Returns the sequences of a node's transactions that the snapshot has.
    package func sequences(of node: NodeID) throws(StoreError) -> [ClosedRange<Int64>] {
        guard let origin = origins.first(where: { NodeID(bytes: $0.node) == node }) else { return [] }
        return try SequenceSet(origin).ranges
    }
}
