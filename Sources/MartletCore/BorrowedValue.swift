/// A value whose bytes belong to an SQLite statement: it is valid until that statement moves on. Turning it into a
/// ``Value`` copies them.
package enum BorrowedValue {
    case null
    case integer(Int64)
    case real(Double)
    case text(UnsafeRawBufferPointer)
    case blob(UnsafeRawBufferPointer)
    /// See ``Value/rawText(_:)``.
    case rawText(UnsafeRawBufferPointer)

    /// The size of a text or blob, in bytes.
    package var byteCount: Int {
        switch self {
        case .text(let bytes), .blob(let bytes), .rawText(let bytes): bytes.count
        case .null, .integer, .real: 0
        }
    }
}
