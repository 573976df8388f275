import MartletStore
public import MartletSync
import Synchronization

/// A key ring in a file that may change while an agent runs. Rereads the file when it has changed.
public final class KeyRingFile: KeySource {
    public let path: String
    private let known: Mutex<Known?>

    private struct Known {
        var ring: KeyRing
        var version: SecretFile.Version
        var isFresh: Bool
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the file is missing, others can read it,
    ///   or it is not a key ring.
    public init(_ path: String) throws {
        self.path = path
        known = Mutex(nil)
        _ = try ring()
    }

    public func ring() throws -> KeyRing {
        try known.withLock { known in
            if let known, !known.isFresh, SecretFile.version(path) == known.version { return known.ring }
            let now = SecretFile.now
            let (text, version) = try SecretFile.read(path, as: "key ring")
            let ring = try KeyRing(parsing: text)
            known = Known(ring: ring, version: version, isFresh: version.isFresh(at: now))
            return ring
        }
    }
}
