import GRDB

/// How the clocks of a row are kept beside it: the newest insert in two columns, and the rest, which most rows don't have,
/// as a blob: for each exception the column's slot and the node's number as base-128 varints around eight little-endian
/// bytes of time. Slot 0 stands for the newest delete.
struct ClockCoding {
    let nodes: NodeDirectory

    func decode(hlc: Int64, node: Int64, attributes: [UInt8]?) -> RowClocks {
        let inserted = Stamp(time: HybridTime(rawValue: UInt64(bitPattern: hlc)), node: nodes.node(node))
        guard let attributes, !attributes.isEmpty else { return RowClocks(inserted: inserted) }
        var deleted: Stamp?
        var exceptions: [Int: Stamp] = [:]
        var rest = attributes[...]
        while let slot = Self.varint(&rest), rest.count >= 8 {
            let time = rest.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
            rest = rest.dropFirst(8)
            guard let number = Self.varint(&rest) else { break }
            let stamp = Stamp(time: HybridTime(rawValue: time), node: nodes.node(Int64(number)))
            if slot == 0 { deleted = stamp } else { exceptions[Int(slot)] = stamp }
        }
        return RowClocks(inserted: inserted, deleted: deleted, exceptions: exceptions)
    }

    func attributes(_ db: Database, _ clocks: RowClocks) throws -> [UInt8]? {
        guard clocks.deleted != nil || !clocks.exceptions.isEmpty else { return nil }
        var bytes: [UInt8] = []
        if let deleted = clocks.deleted { try append(db, 0, deleted, &bytes) }
        for (slot, stamp) in clocks.exceptions.sorted(by: { $0.key < $1.key }) { try append(db, slot, stamp, &bytes) }
        return bytes
    }

    private func append(_ db: Database, _ slot: Int, _ stamp: Stamp, _ bytes: inout [UInt8]) throws {
        Self.append(UInt64(slot), &bytes)
        withUnsafeBytes(of: stamp.time.rawValue.littleEndian) { bytes.append(contentsOf: $0) }
        Self.append(UInt64(try nodes.number(db, stamp.node)), &bytes)
    }

    private static func append(_ value: UInt64, _ bytes: inout [UInt8]) {
        var value = value
        while value >= 0x80 {
            bytes.append(UInt8(value & 0x7f) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }

    private static func varint(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while let byte = bytes.popFirst() {
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
            if shift > 63 { return nil }
        }
        return nil
    }
}
