package import MartletCore

extension WireSnapshotHeader {
    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` for values that no node has.
    package func checkBounds() throws(StoreError) {
        guard InputBounds.isName(makerName), InputBounds.isName(topic),
            origins.allSatisfy({ InputBounds.isName($0.name) })
        else { throw SnapshotFormat.damaged("a name is too long") }
        guard InputBounds.milliseconds.contains(madeMs) else {
            throw SnapshotFormat.damaged("its time is out of range")
        }
        // Whoever collects tombstones has its clock there.
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
    /// Of a chunk in a snapshot. Nil for one that makes no sense.
    package init?(_ chunk: WireSnapshotChunk) {
        guard let origin = NodeID(bytes: chunk.origin), let sequence = InputBounds.sequence(chunk.sequence),
            chunk.index < chunk.count, chunk.count <= InputBounds.maxChunks, !chunk.payload.isEmpty
        else { return nil }
        self.init(origin: origin, sequence: sequence, chunk: (Int(chunk.index), Int(chunk.count)))
    }
}
