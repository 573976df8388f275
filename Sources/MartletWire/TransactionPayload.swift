import Crypto

/// The bytes of an encoded transaction: in memory, or kept elsewhere and read in pieces, so that a large transaction is
/// never in memory as a whole.
package enum TransactionPayload: Sendable {
    case whole([UInt8])
    case stored(any StoredPayload)

    /// Size in bytes.
    package var count: Int {
        switch self {
        case .whole(let bytes): bytes.count
        case .stored(let payload): payload.count
        }
    }

    /// Returns all bytes. Takes memory for all of them.
    package func joined() throws -> [UInt8] {
        defer { rewind() }
        var pieces = PayloadPieces(self)
        guard var bytes = try pieces.next() else { return [] }
        bytes.reserveCapacity(count)
        while let piece = try pieces.next() { bytes += piece }
        return bytes
    }

    /// Returns the first bytes.
    package func beginning(_ maxCount: Int) throws -> [UInt8] {
        defer { rewind() }
        var pieces = PayloadPieces(self)
        var bytes: [UInt8] = []
        while bytes.count < maxCount, let piece = try pieces.next() { bytes += piece.prefix(maxCount - bytes.count) }
        return bytes
    }

    /// Returns the SHA-256 of all bytes.
    package func digest() throws -> [UInt8] {
        defer { rewind() }
        var pieces = PayloadPieces(self)
        var hash = SHA256()
        while let piece = try pieces.next() { piece.withUnsafeBytes { hash.update(bufferPointer: $0) } }
        return Array(hash.finalize())
    }

    /// Returns the checksum of all bytes, as it is in headers.
    package func checksum() throws -> [UInt8] {
        defer { rewind() }
        var pieces = PayloadPieces(self)
        var sum = CRC32.Sum()
        while let piece = try pieces.next() { sum.add(piece) }
        return sum.digits
    }

    /// Returns true if both have the same bytes, however they are cut into pieces.
    package func equals(_ other: TransactionPayload) throws -> Bool {
        guard count == other.count else { return false }
        defer {
            rewind()
            other.rewind()
        }
        var (pieces, others) = (PayloadPieces(self), PayloadPieces(other))
        var (piece, otherPiece): (ArraySlice<UInt8>, ArraySlice<UInt8>) = ([], [])
        while true {
            if piece.isEmpty { piece = try pieces.next()?[...] ?? [] }
            if otherPiece.isEmpty { otherPiece = try others.next()?[...] ?? [] }
            let length = min(piece.count, otherPiece.count)
            guard length > 0 else { return piece.isEmpty && otherPiece.isEmpty }
            guard piece.prefix(length) == otherPiece.prefix(length) else { return false }
            piece = piece.dropFirst(length)
            otherPiece = otherPiece.dropFirst(length)
        }
    }

    func rewind() {
        if case .stored(let payload) = self { payload.rewind() }
    }
}

/// A payload that is kept outside of memory, in pieces of at least one byte.
///
/// Read by one reader at a time, on the thread of whatever keeps it.
package protocol StoredPayload: AnyObject, Sendable {
    /// Size of the whole payload in bytes.
    var count: Int { get }

    /// Ends the present pass over the pieces: the next one begins with the first piece.
    func rewind()

    /// Returns the next piece. Nil after the last one.
    func next() throws -> [UInt8]?
}

/// Iterates over the pieces of a payload.
struct PayloadPieces {
    private enum Rest {
        case whole([UInt8])
        case stored(any StoredPayload)
        case nothing
    }

    private var rest: Rest

    init(_ payload: TransactionPayload) {
        payload.rewind()
        rest =
            switch payload {
            case .whole(let bytes): bytes.isEmpty ? .nothing : .whole(bytes)
            case .stored(let payload): .stored(payload)
            }
    }

    mutating func next() throws -> [UInt8]? {
        switch rest {
        case .nothing: return nil
        case .whole(let bytes):
            rest = .nothing
            return bytes
        case .stored(let payload):
            if let piece = try payload.next() { return piece }
            rest = .nothing
            return nil
        }
    }
}
