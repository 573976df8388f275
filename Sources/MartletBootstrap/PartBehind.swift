import Dispatch
import MartletWire
import Synchronization

/// A part of a snapshot that is encoded on another thread while the rows of the next one are read.
final class PartBehind: Sendable {
    /// The bytes of a part, and their SHA-256.
    struct Encoded: Sendable {
        var bytes: [UInt8]
        var hash: [UInt8]

        init(_ kind: WireSnapshotPart.OneOf_Kind) throws {
            bytes = try SnapshotFormat.encode(kind)
            hash = SnapshotFormat.hash(bytes)
        }
    }

    private let done = DispatchGroup()
    private let content: Mutex<Result<Encoded, any Error>?>

    init(_ kind: WireSnapshotPart.OneOf_Kind) {
        content = Mutex(nil)
        DispatchQueue.global().async(group: done) { [self] in
            let encoded = Result { try Encoded(kind) }
            content.withLock { $0 = encoded }
        }
    }

    /// Waits until the part is encoded.
    func result() throws -> Encoded? {
        done.wait()
        return try content.withLock { $0 }?.get()
    }
}
