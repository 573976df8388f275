import MartletStore

/// Finds the newest of the records that ``RecentEntries`` has of a row: a hash table of the places at which records
/// begin.
///
/// A record and its place take about 50 bytes; an entry of a dictionary of clocks by ID took 180.
struct RecordIndex {
    /// 32 bits of a hash, and a place plus one. 0 is free. As many as a power of two.
    private var slots = [UInt64](repeating: 0, count: 16)
    private var count = 0

    /// Returns the newest record of the row.
    func record(
        of entity: Int64, _ identity: UnsafeRawBufferPointer, in records: UnsafeRawBufferPointer
    ) -> ClockRecord? {
        find(Self.hash(entity, identity), entity, identity, records).record
    }

    /// Notes that this record is the newest of its row.
    mutating func note(_ record: ClockRecord, in records: UnsafeRawBufferPointer) {
        let hash = Self.hash(record.entity, record.identity)
        let (slot, known) = find(hash, record.entity, record.identity, records)
        slots[slot] = hash << 32 | UInt64(record.place + 1)
        guard known == nil else { return }
        count += 1
        if count > slots.count / 4 * 3 { grow() }
    }

    /// Calls `body` with the newest record of each row.
    func forEach(in records: UnsafeRawBufferPointer, _ body: (ClockRecord) -> Void) {
        for slot in slots { if let record = Self.record(in: slot, records) { body(record) } }
    }

    /// Keeps the memory: there will be as many again.
    mutating func removeAll() {
        for index in slots.indices { slots[index] = 0 }
        count = 0
    }

    /// Returns the slot that has the row's record, or that would get it.
    private func find(
        _ hash: UInt64, _ entity: Int64, _ identity: UnsafeRawBufferPointer, _ records: UnsafeRawBufferPointer
    ) -> (slot: Int, record: ClockRecord?) {
        var slot = Int(hash) & (slots.count - 1)
        while slots[slot] != 0 {
            if slots[slot] >> 32 == hash, let record = Self.record(in: slots[slot], records),
                record.entity == entity, record.identity.areEqual(to: identity)
            {
                return (slot, record)
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return (slot, nil)
    }

    private mutating func grow() {
        let old = slots
        slots = [UInt64](repeating: 0, count: old.count * 2)
        for content in old where content != 0 {
            var slot = Int(content >> 32) & (slots.count - 1)
            while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = content
        }
    }

    private static func record(in slot: UInt64, _ records: UnsafeRawBufferPointer) -> ClockRecord? {
        slot == 0 ? nil : ClockRecord(in: records, at: Int(slot & 0xffff_ffff) - 1)
    }

    /// Seeded anew in each process: nobody can choose IDs that collide.
    private static func hash(_ entity: Int64, _ identity: UnsafeRawBufferPointer) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(entity)
        hasher.combine(bytes: identity)
        return UInt64(UInt32(truncatingIfNeeded: hasher.finalize()))
    }
}
