package import MartletCore

extension WireSnapshotHeader {
    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` if a value is one that no node can have.
    package func checkBounds() throws(StoreError) {
        guard InputBounds.isName(makerName), InputBounds.isName(topic),
            origins.allSatisfy({ InputBounds.isName($0.name) })
        else { throw SnapshotFormat.damaged("a name is too long") }
        guard InputBounds.milliseconds.contains(madeMs) else {
            throw SnapshotFormat.damaged("its time is out of range")
        }
        // A node collects tombstones only up to a time that its own clock has reached.
        guard InputBounds.time(hlc) != nil, collected <= hlc else {
            throw SnapshotFormat.damaged("its clock is out of range")
        }
        for position in positions {
            guard InputBounds.partitions.contains(position.partition), InputBounds.offsets.contains(position.next),
                position.origin.isEmpty || NodeID(bytes: position.origin) != nil,
                position.sequence == 0 || InputBounds.sequence(position.sequence) != nil,
                InputBounds.milliseconds.contains(position.appendedMs)
            else { throw SnapshotFormat.damaged("its position in a partition is out of range") }
        }
        for origin in origins { _ = try SequenceSet(origin) }
    }
}

extension WireEnvelope {
    /// Creates the envelope of a chunk that a snapshot contains. Returns nil if the chunk is invalid.
    package init?(_ chunk: WireSnapshotChunk) {
        guard let origin = NodeID(bytes: chunk.origin), let sequence = InputBounds.sequence(chunk.sequence),
            chunk.index < chunk.count, chunk.count <= InputBounds.maxChunks, !chunk.payload.isEmpty
        else { return nil }
        self.init(origin: origin, sequence: sequence, chunk: (Int(chunk.index), Int(chunk.count)))
    }
}
