import Dispatch
import MartletCore
import MartletWire
import Synchronization

/// A part of a snapshot that is decoded on another thread while the part before it is applied.
final class PartAhead: Sendable {
    /// The number of the message after the part.
    let following: Int
    private let done = DispatchGroup()
    private let content: Mutex<Result<DecodedSnapshotPart, StoreError>?>

    /// - Parameter spent: a part that was applied already. It consists of thousands of objects, which are released on
    ///   the same thread.
    init(_ bytes: [UInt8], following: Int, after spent: PartAhead?) {
        self.following = following
        content = Mutex(nil)
        DispatchQueue.global().async(group: done) { [self] in
            spent?.letGo()
            let decoded = Result { () throws(StoreError) in try DecodedSnapshotPart(bytes) }
            content.withLock { $0 = decoded }
        }
    }

    /// Waits until the part is decoded.
    func result() throws -> DecodedSnapshotPart? {
        done.wait()
        return try content.withLock { $0 }?.get()
    }

    private func letGo() { content.withLock { $0 = nil } }
}

/// The parts of a snapshot in order, of which the next one is decoded ahead.
///
/// Reads the topic on the caller's thread.
struct PartsAhead {
    private let reader: SnapshotReader
    private let messageCount: Int
    /// The part that was taken last.
    private var current: PartAhead?
    /// The next part, or the reason why it can't be read, and the number of its first message.
    private var next: (number: Int, part: Result<PartAhead, any Error>)?

    init(_ reader: SnapshotReader, messageCount: Int) {
        self.reader = reader
        self.messageCount = messageCount
    }

    /// Returns the part that begins with this message, and begins to decode the part after it.
    ///
    /// - Returns: the part, and the number of the message after it.
    /// - Throws: the errors of ``SnapshotReader/part(from:)``, and those of decoding.
    mutating func take(from number: Int) throws -> (part: DecodedSnapshotPart, following: Int) {
        let spent = current
        current = nil
        let ahead: PartAhead
        if let next, next.number == number {
            ahead = try next.part.get()
        } else {
            ahead = try read(from: number, after: nil)
        }
        next = nil
        if ahead.following < messageCount {
            // If the next part can't be read, this one is applied all the same.
            let part = Result { try read(from: ahead.following, after: spent) }
            next = (number: ahead.following, part: part)
        }
        current = ahead
        guard let part = try ahead.result() else { throw SnapshotFormat.damaged("message \(number) is gone") }
        return (part, ahead.following)
    }

    private func read(from number: Int, after spent: PartAhead?) throws -> PartAhead {
        let (bytes, following) = try reader.part(from: number)
        return PartAhead(bytes, following: following, after: spent)
    }
}
