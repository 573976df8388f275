/// A value whose bytes belong to somebody else. Those of an SQLite statement are valid until it moves on. Turning it
/// into a ``Value`` copies them.
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

extension Value {
    /// Calls `body` with the value, unless it is a reference, which consists of more than one.
    package func withBorrowed(_ body: (BorrowedValue) -> Void) {
        switch self {
        case .null: body(.null)
        case .integer(let value): body(.integer(value))
        case .real(let value): body(.real(value))
        case .text(var text): text.withUTF8 { body(.text(UnsafeRawBufferPointer($0))) }
        case .blob(let bytes): bytes.withUnsafeBytes { body(.blob($0)) }
        case .rawText(let bytes): bytes.withUnsafeBytes { body(.rawText($0)) }
        case .reference: break
        }
    }
}
