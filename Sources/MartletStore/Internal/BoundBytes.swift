import GRDBSQLite

/// Copies of the short texts and blobs that are bound to a statement.
///
/// For each one, SQLite would allocate memory, and free it at the next bind. That takes longer than everything else
/// that binding does. Here each parameter has memory of its own, which serves for one value after the other.
///
/// Belongs to a statement, which must not run any more once this is released.
struct BoundBytes: ~Copyable {
    /// The longest value that is kept here, in bytes. For longer ones, allocating is a small part of the cost.
    private static let maxCount = 256
    /// The least memory of a parameter, in bytes.
    private static let minCapacity = 32

    private struct Slot {
        /// Nil until the parameter is first bound to a text or a blob.
        var base: UnsafeMutableRawPointer?
        var capacity = 0
    }

    /// By parameter.
    private let slots: UnsafeMutableBufferPointer<Slot>

    init(parameters: Int32) {
        slots = .allocate(capacity: Int(parameters))
        slots.initialize(repeating: Slot())
    }

    deinit {
        for slot in slots { slot.base?.deallocate() }
        slots.deallocate()
    }

    /// Copies a value that is about to be bound.
    ///
    /// - Parameters:
    ///   - bytes: the value, which is not empty.
    ///   - index: the parameter, counted from 1.
    /// - Returns: the copy, which stays valid until the parameter's next value. Nil if SQLite has to copy the value: it
    ///   is too long, there is no such parameter, or the statement is running and still needs the present value.
    func keep(_ bytes: UnsafeRawBufferPointer, of index: Int32, _ statement: OpaquePointer) -> UnsafeRawPointer? {
        let place = Int(index) - 1
        guard bytes.count <= Self.maxCount, slots.indices.contains(place), let source = bytes.baseAddress,
            sqlite3_stmt_busy(statement) == 0
        else { return nil }
        if bytes.count > slots[place].capacity {
            // The parameter refers to the old memory until it is bound again, which happens next.
            slots[place].base?.deallocate()
            let capacity = max(Self.minCapacity, bytes.count)
            slots[place] = Slot(base: .allocate(byteCount: capacity, alignment: 8), capacity: capacity)
        }
        slots[place].base?.copyMemory(from: source, byteCount: bytes.count)
        return UnsafeRawPointer(slots[place].base)
    }
}
