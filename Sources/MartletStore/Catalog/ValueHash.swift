/// A hash of a value, which tells whether the value has changed. Part of the on-disk format.
///
/// `FNV1a` over the storage class and the bytes: two different values have the same hash once in 10^19 times.
enum ValueHash {
    /// The hash of an unknown value.
    static let unknown: UInt64 = 0
    private static let null: UInt64 = 1

    static func of(_ value: Value) -> UInt64 {
        switch value {
        case .null: null
        case .integer(let number): hash(2, number.littleEndian)
        // A REAL column keeps no sign of zero.
        case .real(let number): hash(3, (number == 0 ? 0 : number.bitPattern).littleEndian)
        case .text(let text): hash(4, text.utf8)
        case .rawText(let bytes): hash(4, bytes)
        case .blob(let bytes): hash(5, bytes)
        case .reference(let reference): hash(6, reference.identity.bytes)
        }
    }

    /// Returns whether the column's current value could stem from a value with this hash, converted by the column's
    /// affinity, as when a table is rebuilt with other column types. This never confuses two values of the column
    /// itself: the affinity converts all values for which this is true to the current one.
    static func mayStandFor(_ hash: UInt64, in column: EntityColumn, _ value: Value) -> Bool {
        guard !column.hasNoAffinity else { return false }
        return origins(of: value).contains { of($0) == hash }
    }

    /// Returns the values that a column's affinity can convert to this one.
    private static func origins(of value: Value) -> [Value] {
        switch value {
        case .text(let text):
            let integer = Int64(text).flatMap { String($0) == text ? Value.integer($0) : nil }
            return [integer, Double(text).map { .real($0) }].compactMap(\.self)
        case .integer(let number):
            let real = Double(exactly: number).map { Value.real($0) }
            return [real, .text("\(number)"), .text("\(number).0")].compactMap(\.self)
        case .real(let number):
            return [Int64(exactly: number).map { Value.integer($0) }, .text("\(number)")].compactMap(\.self)
                + (Int64(exactly: number).map { [.text("\($0)")] } ?? [])
        case .null, .blob, .rawText, .reference: return []
        }
    }

    private static func hash(_ kind: UInt8, _ number: some FixedWidthInteger) -> UInt64 {
        withUnsafeBytes(of: number) { hash(kind, $0) }
    }

    private static func hash(_ kind: UInt8, _ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash = FNV1a()
        hash.add(kind)
        let isDone: Void? = bytes.withContiguousStorageIfAvailable { hash.add(UnsafeRawBufferPointer($0)) }
        if isDone == nil { hash.add(bytes) }
        return hash.value > null ? hash.value : hash.value + 2
    }
}
