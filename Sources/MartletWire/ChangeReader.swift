/// Reads the changes of an encoded transaction one after the other, from the pieces of its payload. Keeps only the
/// piece that it reads, or the pieces that one change is in.
struct ChangeReader {
    private enum Form {
        case protobuf
        case json(JSONElements)
    }

    private enum Step {
        /// The content of a change, as a range of ``window``.
        case change(Range<Int>)
        /// The object is complete. Only in JSON: a binary message ends with its last byte.
        case end
        /// The window ends too early: how many more bytes are needed at least, and the error if there are none. Nil if
        /// the transaction may end here.
        case cut(needed: Int, WireError?)
    }

    /// The limit for all parts of a transaction other than its changes. It exceeds what the names and the rest can
    /// take.
    private static let maxHeaderBytes = 1 << 20
    /// The most bytes of a field before its content, and more than a comma takes.
    private static let framingBytes = 20
    /// The number of the field `changes` of `Transaction`.
    static let field: UInt64 = 8

    private var pieces: PayloadPieces
    private var form: Form
    private let maxChangeBytes: Int
    /// The bytes that are being read.
    private(set) var window: [UInt8]
    /// Everything in the window before this was read.
    private var place = 0
    private var isAtEnd = false
    /// What was read so far of the transaction without its changes, still encoded.
    private(set) var header: [UInt8] = []

    let encoding: WireEncoding

    /// - Parameter maxChangeBytes: the limit for a change that is in several pieces. They are in memory together.
    init(_ payload: TransactionPayload, maxChangeBytes: Int) throws {
        pieces = PayloadPieces(payload)
        window = try pieces.next() ?? []
        self.maxChangeBytes = maxChangeBytes
        encoding = WireEncoding(of: window)
        form = encoding == .json ? .json(JSONElements(of: "changes")) : .protobuf
    }

    /// Returns the content of the next change, as a range of ``window``. Nil after the last one.
    ///
    /// - Throws: ``WireError`` if the bytes are not a transaction.
    mutating func next() throws -> Range<Int>? {
        while !isAtEnd {
            switch try step() {
            case .change(let content): return content
            case .end:
                repeat { try takeHeader(upTo: window.count) } while try extend(1)
                isAtEnd = true
            case .cut(let needed, let error):
                if try extend(needed) { continue }
                if let error { throw error }
                isAtEnd = true
            }
        }
        return nil
    }

    /// Returns the contents of the next changes as ranges of the same bytes: one, and those that follow it in the
    /// window up to a size. Nil after the last change.
    mutating func block(_ maxBytes: Int) throws -> (bytes: [UInt8], changes: [Range<Int>])? {
        guard let first = try next() else { return nil }
        var changes = [first]
        while place - first.lowerBound < maxBytes, case .change(let content) = try step() { changes.append(content) }
        return (window, changes)
    }

    /// Reads up to the end of a change that is in the window as a whole. Leaves the window as it is.
    private mutating func step() throws(WireError) -> Step {
        switch form {
        case .protobuf: try stepBinary()
        case .json(let elements): try stepJSON(elements)
        }
    }

    private mutating func stepBinary() throws(WireError) -> Step {
        while place < window.count {
            var fields = ProtobufFields(place..<window.count)
            let found: ProtobufFields.Field?
            do throws(WireError) {
                found = try fields.next(in: window)
            } catch {
                guard let missing = fields.missing else { throw error }
                let isChange = missing.number == Self.field
                let limit = isChange ? maxChangeBytes : Self.maxHeaderBytes
                guard missing.bytes <= limit + Self.framingBytes - (window.count - place) else {
                    throw isChange ? Self.tooLarge(limit) : Self.tooLong
                }
                return .cut(needed: missing.bytes, error)
            }
            guard let found else { break }
            if found.number == Self.field, let content = found.content {
                place = found.whole.upperBound
                return .change(content)
            }
            try takeHeader(upTo: found.whole.upperBound)
        }
        return .cut(needed: 1, nil)
    }

    private mutating func stepJSON(_ elements: JSONElements) throws(WireError) -> Step {
        var ahead = elements
        let found: (whole: Range<Int>, content: Range<Int>)?
        do throws(WireError) {
            found = try ahead.next(in: window)
        } catch {
            // More bytes will show whether the element is incomplete or invalid. Doubling the window keeps the time for
            // all attempts in proportion to its size. The header may come before the first element, and between arrays.
            let start = ahead.isInArray ? ahead.start : window.count
            guard start - place <= Self.maxHeaderBytes else { throw Self.tooLong }
            guard window.count - start <= maxChangeBytes + Self.framingBytes else {
                throw Self.tooLarge(maxChangeBytes)
            }
            return .cut(needed: max(1, window.count - place), error)
        }
        guard let found else { return .end }
        try takeHeader(upTo: found.whole.lowerBound)
        place = found.whole.upperBound
        form = .json(ahead)
        return .change(found.content)
    }

    private mutating func takeHeader(upTo end: Int) throws(WireError) {
        guard header.count + end - place <= Self.maxHeaderBytes else { throw Self.tooLong }
        header += window[place..<end]
        place = end
    }

    /// Puts further pieces into the window, in place of what was read.
    ///
    /// - Returns: false if there are none.
    private mutating func extend(_ needed: Int) throws -> Bool {
        guard let piece = try pieces.next() else { return false }
        if case .json(var elements) = form {
            elements.move(by: place)
            form = .json(elements)
        }
        // New bytes, since blocks may still have the ones before.
        window = place == window.count ? piece : Array(window[place...]) + piece
        place = 0
        var added = piece.count
        while added < needed, let piece = try pieces.next() {
            window += piece
            added += piece.count
        }
        return true
    }

    private static let tooLong = WireError(
        "The transaction without its changes has more than \(maxHeaderBytes) bytes.")

    private static func tooLarge(_ limit: Int) -> WireError {
        WireError("A change has more than \(limit) bytes (security.limits.maxRowBytes).")
    }
}
