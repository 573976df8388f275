import MartletSync
import MartletTestSupport
import Testing

/// How the rows of a snapshot are divided into parts.
@Suite struct SnapshotPartTests {
    /// The row comes after others that fill a part in part.
    @Test func aRowAsLargeAsATransactionMayBeIsReadFromASnapshot() throws {
        let lab = try SnapshotLab(partitions: 1)
        let a = try lab.node("a") { $0.maxMessageBytes = 4000 }
        for (key, size) in [("1", 1500), ("2", 1500), ("3", 18_500)] {
            try a.write("INSERT INTO setting VALUES ('\(key)', hex(zeroblob(\(size / 2))))")
        }
        try exchange([a])
        try a.makeSnapshot()
        try lab.prune()
        let limits = MessageSecurity(keys: nil) {
            $0.maxMessageBytes = 10_000
            $0.maxTransactionBytes = 20_000
        }
        let b = try TestNode(
            "b", bus: lab.bus, snapshots: lab.snapshots, directory: lab.directory, schema: lab.schema,
            security: limits
        ) { $0.maxMessageBytes = 4000 }
        try b.consume()
        try expectSame([a, b])
    }
}
