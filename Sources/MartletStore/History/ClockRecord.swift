/// The clock of one row that is identified by its stable ID. The blobs of ``RecentClocks`` are sequences of such
/// records. Part of the on-disk format.
///
/// A record consists of the entity and the length of the ID (both base-128 varints), the ID, and a byte that tells what
/// follows. 0: the row is gone, and nothing follows. 1: a clock, as eight little-endian bytes of time and the node's
/// number as a varint. 2: a clock, then the length of the attributes as a varint, and the attributes. Varints of signed
/// numbers hold the same 64 bits as an unsigned number.
package struct ClockRecord {
    /// Where it begins in the bytes.
    package var place: Int
    package var entity: Int64
    package var identity: UnsafeRawBufferPointer
    /// Nil if the row is gone.
    package var clock: Clock?

    package struct Clock {
        package var time: Int64
        package var node: Int64
        /// Empty if the row has none.
        package var attributes: UnsafeRawBufferPointer
    }

    private enum Kind {
        static let gone: UInt8 = 0
        static let plain: UInt8 = 1
        static let attributed: UInt8 = 2
    }

    package static func append(gone identity: [UInt8], of entity: Int64, to bytes: inout [UInt8]) {
        append(entity, identity, Kind.gone, to: &bytes)
    }

    /// - Parameter attributes: The attributes, or nil if there are none.
    package static func append(
        _ identity: [UInt8], of entity: Int64, time: Int64, node: Int64, attributes: [UInt8]?, to bytes: inout [UInt8]
    ) {
        append(entity, identity, attributes == nil ? Kind.plain : Kind.attributed, to: &bytes)
        withUnsafeBytes(of: time.littleEndian) { bytes.append(contentsOf: $0) }
        Varint.append(UInt64(bitPattern: node), to: &bytes)
        guard let attributes else { return }
        Varint.append(counted: attributes, to: &bytes)
    }

    private static func append(_ entity: Int64, _ identity: [UInt8], _ kind: UInt8, to bytes: inout [UInt8]) {
        Varint.append(UInt64(bitPattern: entity), to: &bytes)
        Varint.append(counted: identity, to: &bytes)
        bytes.append(kind)
    }

    /// Calls `body` with each record, in the order in which they were appended. A record is valid as long as the bytes
    /// are.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` if the bytes can't be decoded.
    package static func forEach(
        in bytes: UnsafeRawBufferPointer, _ body: (ClockRecord) throws -> Void
    ) throws {
        var reader = Reader(bytes: bytes)
        while reader.place < bytes.count {
            guard let record = reader.record() else {
                throw StoreError(
                    .corrupt, "The recent clocks in the store can't be read.", hint: "Restore the file from a backup."
                )
            }
            try body(record)
        }
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var place = 0

        mutating func record() -> ClockRecord? {
            let begin = place
            guard let entity = Varint.read(bytes, &place), let identity = counted(), let kind = take(1)?.first else {
                return nil
            }
            var record = ClockRecord(place: begin, entity: Int64(bitPattern: entity), identity: identity)
            guard kind != Kind.gone else { return record }
            guard kind <= Kind.attributed, let time = take(8), let node = Varint.read(bytes, &place) else { return nil }
            var attributes = UnsafeRawBufferPointer(start: nil, count: 0)
            if kind == Kind.attributed {
                guard let found = counted() else { return nil }
                attributes = found
            }
            record.clock = Clock(
                time: Int64(littleEndian: time.loadUnaligned(as: Int64.self)), node: Int64(bitPattern: node),
                attributes: attributes)
            return record
        }

        private mutating func counted() -> UnsafeRawBufferPointer? {
            Varint.read(bytes, &place).flatMap { Int(exactly: $0) }.flatMap { take($0) }
        }

        private mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
            guard count <= bytes.count - place else { return nil }
            defer { place += count }
            return UnsafeRawBufferPointer(rebasing: bytes[place..<place + count])
        }
    }
}

extension ClockRecord {
    /// Reads the record that begins at this place. Nil if there is none.
    package init?(in bytes: UnsafeRawBufferPointer, at place: Int) {
        var reader = Reader(bytes: bytes, place: place)
        guard let record = reader.record() else { return nil }
        self = record
    }
}
