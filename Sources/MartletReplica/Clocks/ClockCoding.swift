package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore

/// Encodes the clocks of a row: the newest insert in two columns, and the rest, which most rows don't have, as a blob.
/// The blob has, for each exception, the column's slot and the node's number as base-128 varints around eight
/// little-endian bytes of time. Slot 0 stands for the newest delete. Exceptions that follow from when columns were
/// added are not stored.
package struct ClockCoding {
    package let nodes: NodeDirectory
    package let additions: ColumnAdditions

    /// - Parameter first: the index in the statement's row at which the columns `hlc, node, attrs` begin.
    package func decode(_ row: PreparedStatement, from first: Int32, of entity: Int64) -> RowClocks {
        let inserted = nodes.stamp(row, first)
        return row.withBlob(first + 2) { decode(entity, inserted, $0) }
    }

    package func decode(_ clock: ClockRecord.Clock, of entity: Int64) -> RowClocks {
        decode(entity, Stamp(time: HybridTime(stored: clock.time), node: nodes.node(clock.node)), clock.attributes)
    }

    private func decode(_ entity: Int64, _ inserted: Stamp, _ attributes: UnsafeRawBufferPointer) -> RowClocks {
        var deleted: Stamp?
        var exceptions = ColumnStamps()
        var place = 0
        while let slot = Varint.read(attributes, &place), place + 8 <= attributes.count {
            let time = UInt64(littleEndian: attributes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
            place += 8
            guard let number = Varint.read(attributes, &place) else { break }
            let stamp = Stamp(time: HybridTime(rawValue: time), node: nodes.node(Int64(truncatingIfNeeded: number)))
            if slot == 0 { deleted = stamp } else { exceptions[Int(truncatingIfNeeded: slot)] = stamp }
        }
        additions.complete(&exceptions, entity, inserted)
        return RowClocks(inserted: inserted, deleted: deleted, exceptions: exceptions)
    }

    package func attributes(_ db: Database, _ clocks: RowClocks, of entity: Int64) throws -> [UInt8]? {
        let exceptions = additions.reduced(clocks, entity)
        guard clocks.deleted != nil || !exceptions.isEmpty else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity((exceptions.entries.count + 1) * 10)
        if let deleted = clocks.deleted { try append(db, 0, deleted, &bytes) }
        for entry in exceptions.entries { try append(db, entry.column, entry.stamp, &bytes) }
        return bytes
    }

    private func append(_ db: Database, _ slot: Int, _ stamp: Stamp, _ bytes: inout [UInt8]) throws {
        Varint.append(UInt64(slot), to: &bytes)
        withUnsafeBytes(of: stamp.time.rawValue.littleEndian) { bytes.append(contentsOf: $0) }
        Varint.append(UInt64(try nodes.number(db, stamp.node)), to: &bytes)
    }
}

extension NodeDirectory {
    /// Returns the stamp in two columns of a row: the time, and the node's number.
    package func stamp(_ row: PreparedStatement, _ first: Int32) -> Stamp {
        Stamp(time: HybridTime(stored: row.integer(first)), node: node(row.integer(first + 1)))
    }
}
