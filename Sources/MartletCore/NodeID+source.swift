extension NodeID {
    /// The node in the stamps of what is ingested from a partition of a topic. The same on every node that ingests it,
    /// so that all of them give a record the same stamp.
    ///
    /// A UUID of version 8 (RFC 9562), made with SHA-256. The IDs of stores are random, and have version 4.
    package init(sourceTopic topic: String, partition: Int32) {
        let name = Array("martlet.ingest\0\(topic)\0\(partition)".utf8)
        var bytes = Array(name.withUnsafeBytes { ContentDigest.sha256($0) }.prefix(16))
        bytes[6] = bytes[6] & 0x0f | 0x80
        bytes[8] = bytes[8] & 0x3f | 0x80
        self = NodeID(bytes: bytes) ?? .none
    }

    /// True for the node in stamps of what was ingested; see ``init(sourceTopic:partition:)``.
    package var isSource: Bool { bytes[6] >> 4 == 8 && bytes[8] >> 6 == 2 }
}
